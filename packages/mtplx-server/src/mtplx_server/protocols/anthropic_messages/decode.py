"""From a Messages request's body to the engine's vocabulary.

Types were checked by the wire model, ranges are checked by the engine's request.
"""

from typing import Any
from uuid import uuid4

from mtplx_client.wire.anthropic import CountTokensRequest, MessagesRequest, OutputFormat
from mtplx_engine.constraint import JsonSchema
from mtplx_engine.conversation import Conversation
from mtplx_engine.info import ModelInfo
from mtplx_engine.request import MAX_STOP_STRINGS, ChatRequest, Limits
from mtplx_server.errors import Problem, RequestRefused, bad_request
from mtplx_server.protocols import options
from mtplx_server.protocols.anthropic_messages import calling, messages
from mtplx_server.protocols.anthropic_messages.encode import MessagesEncoder
from mtplx_server.protocols.anthropic_messages.error import THREADS_UNSUPPORTED
from mtplx_server.protocols.anthropic_messages.fields import TABLE, without_effect
from mtplx_server.protocols.anthropic_messages.heading import Heading
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.fields import check_strict, each_once, extra
from mtplx_server.protocols.report import Asked, form
from mtplx_server.protocols.schemas import json_schema
from mtplx_server.protocols.thinking import SWITCH, effort, unknown_variables

_EFFORT = "output_config.effort"
_SWITCHED = {"enabled": True, "disabled": False, "adaptive": None, "between_tools": None}


def decode(body: MessagesRequest, served: Served, request_id: str) -> Decoded:
    """Read a request.

    Raises:
        RequestRefused: A field is not supported, or the model is not the served one.
        InvalidRequest: A value is out of range.
    """
    request, ignored = _read(body, served)
    asked = Asked(
        request_id,
        served.model.id,
        body.model,
        ignored,
        grammar=form(request.grammar),
        effort=_effort(body, served.model),
    )
    heading = Heading(
        id=f"msg_{uuid4().hex[:24]}",
        asked=asked,
        max_tokens=body.max_tokens,
        context_length=served.model.context_length,
        thinks=body.thinking is None or body.thinking.type != "disabled",
    )
    return Decoded((request,), 1, bool(body.stream), MessagesEncoder(heading))


def prompt(body: CountTokensRequest, served: Served) -> ChatRequest:
    """Read what a request asks of the engine; the prompt is all that matters to count.

    Raises:
        RequestRefused: A field is not supported, or the model is not the served one.
        InvalidRequest: A value is out of range.
    """
    request, _ = _read(body, served)
    return request


def _read(body: CountTokensRequest, served: Served) -> tuple[ChatRequest, list[str]]:
    """The request, and paths of all fields without effect."""
    options.check_model(body.model, served)
    _check_thread(body)
    ignored = _ignored(body, served.model)
    if served.strict_fields:
        check_strict(ignored)
    request = ChatRequest(
        Conversation(
            messages.messages(body),
            _variables(body, served.model),
            calling.tools(body),
            _effort(body, served.model),
        ),
        options.sampling(body),
        _limits(body),
        options.depth(body, served.model),
        options.acceptance(body),
        body.copy_lane,
        grammar=_grammar(body),
        calling=calling.calling(body),
        kv=options.kv(body),
    )
    return request, ignored


def _ignored(body: CountTokensRequest, model: ModelInfo) -> list[str]:
    """Paths of all fields without effect, at any level, each once."""
    found = TABLE.ignored(extra(body))
    found += messages.ignored(body)
    found += calling.ignored(body)
    if body.thinking is not None:
        found += [f"thinking.{name}" for name in without_effect(body.thinking) if name != "display"]
        if _switch(body) and unknown_variables(_switch(body), model):
            found.append("thinking.type")
    if body.output_config is not None:
        found += [f"output_config.{name}" for name in without_effect(body.output_config)]
        if body.output_config.effort is not None and not model.efforts:
            found.append(_EFFORT)
    unknown = unknown_variables(body.chat_template_kwargs, model)
    found += [f"chat_template_kwargs.{name}" for name in unknown]
    return each_once(found)


def _check_thread(body: CountTokensRequest) -> None:
    if extra(body).get("thread") is not None:
        message = "thread: no conversations are kept here; send the whole conversation."
        problem = Problem(400, "invalid_request_error", message, THREADS_UNSUPPORTED, "thread")
        raise RequestRefused(problem)


def _effort(body: CountTokensRequest, model: ModelInfo) -> str | None:
    level = body.output_config.effort if body.output_config else None
    return effort(level, model, _EFFORT)


def _switch(body: CountTokensRequest) -> dict[str, bool]:
    """What the chat template is told of `thinking`."""
    if body.thinking is None:
        return {}
    kind = body.thinking.type
    if kind not in _SWITCHED:
        text = f"thinking.type must be one of {', '.join(_SWITCHED)}; got {kind[:200]!r}."
        raise bad_request(text, param="thinking.type")
    value = _SWITCHED[kind]
    return {} if value is None else {SWITCH: value}


def _variables(body: CountTokensRequest, model: ModelInfo) -> dict[str, Any]:
    switch = _switch(body)
    known = {} if unknown_variables(switch, model) else switch
    return {**known, **(body.chat_template_kwargs or {})}


def _limits(body: CountTokensRequest) -> Limits:
    if body.max_tokens is not None and body.max_tokens < 1:
        text = f"max_tokens must be 1 or more; got {body.max_tokens}."
        raise bad_request(text, param="max_tokens")
    stop = body.stop_sequences or []
    if len(stop) > MAX_STOP_STRINGS or "" in stop:
        text = f"stop_sequences takes at most {MAX_STOP_STRINGS} strings, none of them empty."
        raise bad_request(text, param="stop_sequences")
    return options.limits(body, body.max_tokens, stop)


def _grammar(body: CountTokensRequest) -> JsonSchema | None:
    if body.output_config is not None and body.output_config.format is not None:
        return _schema(body.output_config.format, "output_config.format")
    if body.output_format is not None:
        return _schema(body.output_format, "output_format")
    return None


def _schema(given: OutputFormat, path: str) -> JsonSchema:
    if given.type != "json_schema":
        text = f"{path}.type must be 'json_schema'; got {given.type[:200]!r}."
        raise bad_request(text, param=f"{path}.type", code="unsupported_value")
    return json_schema(given.schema_, f"{path}.schema")
