"""From a chat request's body to the engine's vocabulary.

Types were checked by the wire model, ranges are checked by the engine's request.
"""

import time
from collections.abc import Iterable
from typing import Any, Literal, NoReturn, cast, get_args
from uuid import uuid4

from mtplx_client.wire._base import WireRequest
from mtplx_client.wire.chat import ChatCompletionRequest, ChatMessage, ContentPart
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.info import ModelInfo
from mtplx_engine.request import (
    Acceptance,
    ChatRequest,
    Conversation,
    Limits,
    Message,
    Role,
    Sampling,
)
from mtplx_server.errors import bad_request, unknown_model
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.openai_chat.encode import ChatEncoder
from mtplx_server.protocols.openai_chat.fields import ignored_fields

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
# Fields of a message that change what the model must read, so they cannot be skipped.
_REFUSED_IN_MESSAGE = ("tool_calls", "function_call", "audio")


def decode(body: ChatCompletionRequest, served: Served, request_id: str) -> Decoded:
    """Read a request.

    Raises:
        RequestRefused: A field is not supported, or the model is not the served one.
        InvalidRequest: A value is out of range.
    """
    if served.strict_model and body.model is not None and body.model != served.model.id:
        raise unknown_model(body.model, served.model.id)
    ignored = _ignored(body)
    if ignored and served.strict_fields:
        message = f"{', '.join(ignored)} would have no effect (strict_fields is on)."
        raise bad_request(message, param=ignored[0], code="unsupported_parameter")
    messages = [_message(each, f"messages[{at}]") for at, each in enumerate(body.messages)]
    request = ChatRequest(
        Conversation(tuple(messages), body.chat_template_kwargs or {}),
        Sampling(
            temperature=body.temperature,
            top_k=body.top_k,
            top_p=body.top_p,
            min_p=body.min_p,
            seed=body.seed,
        ),
        _limits(body),
        _depth(body, served.model),
        _acceptance(body.acceptance),
    )
    encoder = ChatEncoder(
        id=f"chatcmpl-{uuid4().hex}",
        created=int(time.time()),
        model=served.model.id,
        request_id=request_id,
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        ignored_fields=ignored,
    )
    return Decoded(request, bool(body.stream), encoder)


_MOST_NAMED = 100


def _ignored(body: ChatCompletionRequest) -> list[str]:
    """Paths of all fields without effect, at any level, each once."""
    found = ignored_fields(_extra(body))
    for message in body.messages:
        found += [f"messages[].{name}" for name in _present(message)]
        if message.role != "assistant":
            found += [
                f"messages[].{name}"
                for name in ("reasoning", "reasoning_content")
                if getattr(message, name) is not None
            ]
        if isinstance(message.content, list):
            for part in message.content:
                found += [f"messages[].content[].{name}" for name in _present(part)]
    if body.stream_options:
        found += [f"stream_options.{name}" for name in _present(body.stream_options)]
    names = list(dict.fromkeys(found))
    if len(names) > _MOST_NAMED:
        names = [*names[:_MOST_NAMED], f"... and {len(names) - _MOST_NAMED} more"]
    return names


def _extra(model: WireRequest) -> dict[str, Any]:
    return model.model_extra or {}


def _present(model: WireRequest) -> Iterable[str]:
    """Undeclared fields that say something; SDKs echo messages with empty ones."""
    return (name for name, value in _extra(model).items() if value not in (None, [], {}, False))


def _message(message: ChatMessage, path: str) -> Message:
    if message.role not in _ROLES:
        _refuse_role(message.role, f"{path}.role")
    role = _ROLES[message.role]
    for name in _REFUSED_IN_MESSAGE:
        if _extra(message).get(name):
            text = f"{path}.{name} is not supported yet."
            raise bad_request(text, param=f"{path}.{name}", code="unsupported_parameter")
    reasoning = None
    if role == "assistant":
        reasoning = message.reasoning_content or message.reasoning or None
    return Message(role, _text(message, f"{path}.content"), reasoning)


def _refuse_role(role: str, path: str) -> NoReturn:
    if role in ("tool", "function"):
        text = f"{path}: messages of role {role!r} are not supported yet."
        raise bad_request(text, param=path, code="unsupported_value")
    raise bad_request(f"{path} must be one of {', '.join(_ROLES)}; got {role!r}.", param=path)


def _text(message: ChatMessage, path: str) -> str:
    match message.content:
        case str(text):
            return text
        case None:
            if message.role != "assistant":
                raise bad_request(f"{path} is missing.", param=path)
            return ""
        case parts:
            return "\n".join(_part(part, f"{path}[{at}]") for at, part in enumerate(parts))


def _part(part: ContentPart, path: str) -> str:
    if part.type != "text":
        text = f"{path}: parts of type {part.type!r} are not supported; only text is."
        raise bad_request(text, param=path, code="unsupported_value")
    if part.text is None:
        raise bad_request(f"{path}.text is missing.", param=f"{path}.text")
    return part.text


def _limits(body: ChatCompletionRequest) -> Limits:
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    if body.max_completion_tokens is None:
        return _at_least_one(body.max_tokens, stop)
    try:
        return _at_least_one(body.max_completion_tokens, stop)
    except InvalidRequest as error:
        if error.param != "max_tokens":
            raise
        name = "max_completion_tokens"
        raise InvalidRequest(str(error).replace("max_tokens", name), name) from None


def _at_least_one(max_tokens: int | None, stop: tuple[str, ...]) -> Limits:
    if max_tokens == 0:
        raise InvalidRequest("max_tokens must be 1 or more; got 0.", "max_tokens")
    return Limits(max_tokens=max_tokens, stop=stop)


def _depth(body: ChatCompletionRequest, model: ModelInfo) -> int | None:
    match body.generation_mode:
        case None:
            return body.depth
        case "ar":
            if body.depth:
                raise InvalidRequest("generation_mode 'ar' contradicts a depth above 0.", "depth")
            return 0
        case "mtp":
            if body.depth == 0:
                raise InvalidRequest("generation_mode 'mtp' contradicts a depth of 0.", "depth")
            if not model.max_depth:
                text = f"generation_mode 'mtp' is not possible: MTP is {model.mtp_reason}."
                raise InvalidRequest(text, "generation_mode")
            return body.depth or model.default_depth or 1
        case other:
            text = f"generation_mode must be 'mtp' or 'ar'; got {other!r}."
            raise InvalidRequest(text, "generation_mode")


def _acceptance(name: str | None) -> Acceptance:
    known = get_args(Acceptance)
    if name is not None and name not in known:
        text = f"acceptance must be one of {', '.join(known)}; got {name!r}."
        raise InvalidRequest(text, "acceptance")
    return cast(Literal["auto", "coupled", "rejection"], name or "auto")
