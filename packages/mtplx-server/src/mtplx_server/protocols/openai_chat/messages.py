"""The messages of a chat request, in the engine's vocabulary."""

from collections.abc import Iterable
from typing import NoReturn

from mtplx_client.wire.chat import ChatMessage, ContentPart, MessageToolCall
from mtplx_engine.conversation import Message, Role
from mtplx_engine.tools import ToolCall
from mtplx_server.errors import bad_request
from mtplx_server.protocols.fields import extra, meaningful
from mtplx_server.protocols.tools import unsupported_part

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
# Fields of a message that change what the model must read, so they cannot be skipped.
_REFUSED = ("function_call", "audio")
# Of an assistant only.
_SAID = ("reasoning", "reasoning_content", "tool_calls")


def message(given: ChatMessage, path: str) -> Message:
    """One message.

    Raises:
        RequestRefused: It holds what is not supported, or lacks what its role needs.
    """
    if given.role not in _ROLES:
        _refuse_role(given.role, f"{path}.role")
    role = _ROLES[given.role]
    for name in _REFUSED:
        if extra(given).get(name):
            text = f"{path}.{name} is not supported."
            raise bad_request(text, param=f"{path}.{name}", code="unsupported_parameter")
    text = _text(given, f"{path}.content")
    if role == "tool":
        if given.tool_call_id is None:
            param = f"{path}.tool_call_id"
            raise bad_request(f"{param} is missing: which call has this result?", param=param)
        return Message(role, text, call_id=given.tool_call_id)
    if role == "assistant":
        reasoning = given.reasoning_content or given.reasoning or None
        calls = enumerate(given.tool_calls or ())
        return Message(
            role,
            text,
            reasoning,
            tuple(_call(each, f"{path}.tool_calls[{at}]") for at, each in calls),
        )
    return Message(role, text)


def _refuse_role(role: str, path: str) -> NoReturn:
    if role == "function":
        text = f"{path}: the role 'function' is not supported; use 'tool'."
        raise bad_request(text, param=path, code="unsupported_value")
    raise bad_request(f"{path} must be one of {', '.join(_ROLES)}; got {role!r}.", param=path)


def _text(given: ChatMessage, path: str) -> str:
    match given.content:
        case str(text):
            return text
        case None:
            if given.role != "assistant":
                raise bad_request(f"{path} is missing.", param=path)
            return ""
        case parts:
            return "\n".join(_part(part, f"{path}[{at}]") for at, part in enumerate(parts))


def _part(part: ContentPart, path: str) -> str:
    if part.type != "text":
        raise unsupported_part(part.type, path)
    if part.text is None:
        raise bad_request(f"{path}.text is missing.", param=f"{path}.text")
    return part.text


def _call(call: MessageToolCall, path: str) -> ToolCall:
    if call.type != "function":
        text = f"{path}.type must be 'function'; got {call.type!r}."
        raise bad_request(text, param=f"{path}.type", code="unsupported_value")
    return ToolCall(call.function.name, call.function.arguments, call.id)


def ignored(messages: Iterable[ChatMessage]) -> Iterable[str]:
    """Paths of all fields without effect."""
    for given in messages:
        yield from (f"messages[].{name}" for name in meaningful(given))
        if given.role != "assistant":
            yield from (f"messages[].{name}" for name in _SAID if getattr(given, name) is not None)
        if given.role != "tool" and given.tool_call_id is not None:
            yield "messages[].tool_call_id"
        if isinstance(given.content, list):
            for part in given.content:
                yield from (f"messages[].content[].{name}" for name in meaningful(part))
