"""The input of a request: items, in the engine's vocabulary.

What an assistant thought, said and called in one turn are separate items; they become one message,
so that the chat template renders the turn as the model wrote it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from mtplx_client.wire.responses import InputItem, InputParts
from mtplx_engine.conversation import Message, Role
from mtplx_engine.tools import ToolCall
from mtplx_server.errors import bad_request
from mtplx_server.protocols.openai_responses import sealed
from mtplx_server.protocols.openai_responses.toolbox import INPUT, joined
from mtplx_server.protocols.openai_responses.unread import unread
from mtplx_server.protocols.tools import unsupported_part

_Value = TypeVar("_Value")

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_LABELS = {"type", "id", "status", "phase"}
_READ = {
    "message": {"role", "content"},
    "function_call": {"call_id", "name", "namespace", "arguments"},
    "function_call_output": {"call_id", "output"},
    "custom_tool_call": {"call_id", "name", "namespace", "input"},
    "custom_tool_call_output": {"call_id", "output"},
    "reasoning": {"content", "summary", "encrypted_content"},
    "additional_tools": {"tools", "role"},
}
_PART_READ = {"type", "text", "refusal", "annotations", "logprobs"}
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


@dataclass(slots=True)
class Transcript:
    """A conversation, as far as it has been read.

    Attributes:
        messages: Its messages.
        paths: Where each of them comes from.
        ignored: Paths of what has no effect.
    """

    messages: list[Message] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def say(self, role: Role, text: str, path: str, call_id: str | None = None) -> None:
        """Add a message of anybody but an assistant."""
        self.messages.append(Message(role, text, call_id=call_id))
        self.paths.append(path)

    def assist(
        self, path: str, *, text: str = "", reasoning: str = "", calls: tuple[ToolCall, ...] = ()
    ) -> None:
        """Add to the assistant's turn; begin one if it is not its turn."""
        if self.messages and self.messages[-1].role == "assistant":
            turn = self.messages.pop()
        else:
            turn = Message("assistant", "")
            self.paths.append(path)
        self.messages.append(
            Message(
                "assistant",
                _lines(turn.text, text),
                _lines(turn.reasoning or "", reasoning) or None,
                turn.calls + calls,
            )
        )


def transcript(instructions: str | None, given: str | Iterable[InputItem] | None) -> Transcript:
    """Read the instructions and the input.

    Raises:
        RequestRefused: An item is not supported, or lacks what its type needs.
    """
    read = Transcript()
    if instructions:
        read.say("system", instructions, "instructions")
    before = len(read.messages)
    if isinstance(given, str):
        read.say("user", given, "input")
    else:
        for at, item in enumerate(given or ()):
            _add(read, item, f"input[{at}]")
    if len(read.messages) == before:
        read.say("user", "", "input")  # clients warm up so
    return read


def kind_of(item: InputItem) -> str:
    """Its type; messages may go without."""
    return item.type or "message"


def _add(read: Transcript, item: InputItem, path: str) -> None:
    kind = kind_of(item)
    match kind:
        case "message":
            _message(read, item, path)
        case "function_call" | "custom_tool_call":
            read.assist(path, calls=(_call(item, path),))
        case "function_call_output" | "custom_tool_call_output":
            call_id = _needed(item.call_id, f"{path}.call_id")
            text = _text(read, item.output, f"{path}.output")
            read.say("tool", text, path, call_id)
        case "reasoning":
            if thought := _thought(read, item, path):
                read.assist(path, reasoning=thought)
        case "additional_tools":
            pass  # the toolbox has them
        case "item_reference":
            text = f"{path}: nothing is stored; send the item itself."
            raise bad_request(text, param=path, code="unsupported_value")
        case _:
            text = f"{path}.type: items of type {kind[:100]!r} are not supported."
            raise bad_request(text, param=f"{path}.type", code="unsupported_value")
    read.ignored += [f"input[].{name}" for name in unread(item, _READ[kind] | _LABELS)]


def _message(read: Transcript, item: InputItem, path: str) -> None:
    role = _ROLES.get(_needed(item.role, f"{path}.role"))
    if role is None:
        text = f"{path}.role must be one of {', '.join(_ROLES)}; got {str(item.role)[:100]!r}."
        raise bad_request(text, param=f"{path}.role")
    text = _text(read, item.content, f"{path}.content")
    if role == "assistant":
        read.assist(path, text=text)
    else:
        read.say(role, text, path)


def _call(item: InputItem, path: str) -> ToolCall:
    call_id = _needed(item.call_id, f"{path}.call_id")
    name = joined(_needed(item.name, f"{path}.name"), item.namespace)
    if item.type == "function_call":
        return ToolCall(name, _needed(item.arguments, f"{path}.arguments"), call_id)
    said = _needed(item.input, f"{path}.input")
    return ToolCall(name, json.dumps({INPUT: said}, ensure_ascii=False), call_id)


def _thought(read: Transcript, item: InputItem, path: str) -> str:
    """What was thought, from wherever it can be read."""
    for name in ("content", "summary"):
        if parts := getattr(item, name):
            return _text(read, parts, f"{path}.{name}")
    if not item.encrypted_content:
        return ""
    opened = sealed.opened(item.encrypted_content)
    if opened is None:
        read.ignored.append("input[].encrypted_content")
    return opened or ""


def _text(read: Transcript, content: str | InputParts | None, path: str) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for at, part in enumerate(_needed(content, path)):
        where = f"{path}[{at}]"
        if part.type not in (*_TEXTS, "refusal"):
            raise unsupported_part(part.type, where)
        name = "refusal" if part.type == "refusal" else "text"
        texts.append(_needed(getattr(part, name), f"{where}.{name}"))
        read.ignored += [f"input[].content[].{name}" for name in unread(part, _PART_READ)]
    return "\n".join(texts)


def _needed(value: _Value | None, path: str) -> _Value:
    if value is None:
        raise bad_request(f"{path} is missing.", param=path)
    return value


def _lines(first: str, second: str) -> str:
    return "\n".join(filter(None, (first, second)))
