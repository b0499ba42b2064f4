"""The messages and tools of a chat request, in the engine's vocabulary."""

import json
from collections.abc import Iterable, Sequence

from mtplx_client.wire.ollama import OllamaMessage, OllamaTool
from mtplx_engine.conversation import Message, Role
from mtplx_engine.tools import Tool, ToolCall
from mtplx_server.errors import bad_request
from mtplx_server.protocols.fields import extra, meaningful
from mtplx_server.protocols.tools import check_name, unsupported_part

_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def messages(given: Sequence[OllamaMessage]) -> tuple[Message, ...]:
    """All messages, with each result given to its call.

    Results usually name a function at most, so calls without an id get one of their own.

    Raises:
        RequestRefused: One holds what is not supported, or lacks what its role needs.
    """
    made: list[Message] = []
    waiting: list[ToolCall] = []
    for at, each in enumerate(given):
        path = f"messages[{at}]"
        role, text = _role(each, path), _text(each, path)
        if role == "assistant":
            calls = _calls(each, at)
            waiting = list(calls) or waiting
            made.append(Message(role, text, each.thinking or None, calls))
        elif role == "tool":
            made.append(Message(role, text, call_id=_answered(each, waiting)))
        else:
            made.append(Message(role, text))
    return tuple(made)


def _role(given: OllamaMessage, path: str) -> Role:
    if given.role not in _ROLES:
        text = f"{path}.role must be one of {', '.join(_ROLES)}; got {given.role!r}."
        raise bad_request(text, param=f"{path}.role")
    return _ROLES[given.role]


def _text(given: OllamaMessage, path: str) -> str:
    if extra(given).get("images"):
        raise unsupported_part("image", f"{path}.images")
    if given.content is None and given.role != "assistant":
        raise bad_request(f"{path}.content is missing.", param=f"{path}.content")
    return given.content or ""


def _calls(given: OllamaMessage, message: int) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            call.function.name,
            json.dumps(call.function.arguments, ensure_ascii=False),
            call.id or f"call_{message}_{at}",
        )
        for at, call in enumerate(given.tool_calls or ())
    )


def _answered(given: OllamaMessage, waiting: list[ToolCall]) -> str | None:
    """The id of the call whose result this is: as it says, else by the name, else the next.

    A name that no call has is not believed: some clients write other things there.
    """
    if given.tool_call_id:
        named = [call for call in waiting if call.id == given.tool_call_id]
    else:
        named = [call for call in waiting if call.name == given.tool_name] or waiting[:1]
    if not named:
        return given.tool_call_id or None
    waiting.remove(named[0])
    return named[0].id


def tools(given: Sequence[OllamaTool]) -> tuple[Tool, ...]:
    """The functions that the model is told of.

    Raises:
        RequestRefused: A tool is not a function, or has no proper name.
    """
    return tuple(_tool(each, f"tools[{at}]") for at, each in enumerate(given))


def _tool(given: OllamaTool, path: str) -> Tool:
    if given.type not in (None, "", "function"):
        text = f"{path}.type: tools of type {given.type!r} are not supported; only functions are."
        raise bad_request(text, param=f"{path}.type", code="unsupported_value")
    if given.function is None:
        raise bad_request(f"{path}.function is missing.", param=f"{path}.function")
    function = given.function
    check_name(function.name, f"{path}.function.name")
    return Tool(function.name, function.description, function.parameters)


def ignored(given: Iterable[OllamaMessage], tools: Iterable[OllamaTool]) -> Iterable[str]:
    """Paths of all fields without effect."""
    for each in given:
        yield from (f"messages[].{name}" for name in meaningful(each))
        if each.role != "assistant" and each.thinking:
            yield "messages[].thinking"
        if each.role != "assistant" and each.tool_calls:
            yield "messages[].tool_calls"
        if each.role != "tool" and (each.tool_name or each.tool_call_id):
            yield "messages[].tool_name" if each.tool_name else "messages[].tool_call_id"
        for call in each.tool_calls or ():
            # Replies number their calls in `index`; their order says the same.
            names = (name for name in meaningful(call.function) if name != "index")
            yield from (f"messages[].tool_calls[].function.{name}" for name in names)
            names = (name for name in meaningful(call) if name != "type")
            yield from (f"messages[].tool_calls[].{name}" for name in names)
    for tool in tools:
        yield from (f"tools[].{name}" for name in meaningful(tool))
        if tool.function is not None:
            yield from (f"tools[].function.{name}" for name in meaningful(tool.function))
