"""The messages and tools of a chat request, in the engine's vocabulary."""

import json
from collections.abc import Iterable, Iterator, Sequence

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

    Raises:
        RequestRefused: One holds what is not supported, or lacks what its role needs.
    """
    made: list[Message] = []
    open_calls = _OpenCalls()
    for at, each in enumerate(given):
        path = f"messages[{at}]"
        role, text = _role(each, path), _text(each, path)
        if role == "assistant":
            calls = tuple(open_calls.make(each, at))
            made.append(Message(role, text, each.thinking or None, calls))
        elif role == "tool":
            made.append(Message(role, text, call_id=open_calls.answer(each)))
        else:
            made.append(Message(role, text))
    return tuple(made)


class _OpenCalls:
    """The calls that wait for their results.

    Most clients know no ids, so calls without one get their own; and some put an id into a result
    that no call has.
    """

    def __init__(self) -> None:
        self._waiting: list[ToolCall] = []
        self._ids: set[str] = set()  # those that the client gave

    def make(self, given: OllamaMessage, message: int) -> Iterator[ToolCall]:
        """The calls of an assistant."""
        if given.tool_calls:
            self._waiting.clear()
        for at, each in enumerate(given.tool_calls or ()):
            arguments = json.dumps(each.function.arguments, ensure_ascii=False)
            call = ToolCall(each.function.name, arguments, each.id or f"call_{message}_{at}")
            if each.id:
                self._ids.add(each.id)
            self._waiting.append(call)
            yield call

    def answer(self, given: OllamaMessage) -> str | None:
        """The id of the call whose result this is: by its id, else by its name, else the next."""
        waiting = self._waiting
        if given.tool_call_id:
            waiting = [call for call in waiting if call.id not in self._ids]
            if given.tool_call_id in self._ids or not waiting:
                self._waiting = [call for call in self._waiting if call.id != given.tool_call_id]
                return given.tool_call_id
        call = next((each for each in waiting if each.name == given.tool_name), None)
        call = call or next(iter(waiting), None)
        if call is None:
            return None
        self._waiting.remove(call)
        return call.id


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
