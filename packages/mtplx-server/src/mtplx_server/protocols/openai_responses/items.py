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
from mtplx_server.protocols.fields import unread
from mtplx_server.protocols.history import Calls
from mtplx_server.protocols.openai_responses import sealed
from mtplx_server.protocols.openai_responses.toolbox import INPUT, joined
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
class _Turn:
    """What an assistant did until somebody else spoke."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    def message(self) -> Message:
        """All of it."""
        thoughts = "\n".join(filter(None, self.thoughts)) or None
        return Message(
            "assistant", "\n".join(filter(None, self.texts)), thoughts, tuple(self.calls)
        )


@dataclass(slots=True)
class Transcript:
    """A conversation, as far as it has been read.

    Attributes:
        messages: Its messages; the assistant's open turn is not yet among them.
        ignored: Paths of what has no effect.
        ids: Those of calls.
    """

    messages: list[Message] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    ids: Calls = field(default_factory=Calls)
    _turn: _Turn | None = None

    def say(self, role: Role, text: str, call_id: str | None = None) -> None:
        """Add a message of anybody but an assistant."""
        self.end_turn()
        self.messages.append(Message(role, text, call_id=call_id))

    def turn(self) -> _Turn:
        """The assistant's open turn, to add to; it begins if there is none."""
        if self._turn is None:
            self._turn = _Turn()
            self.ids.begin()
        return self._turn

    def end_turn(self) -> None:
        """Nothing more comes from the assistant for now."""
        if self._turn is not None:
            self.messages.append(self._turn.message())
            self._turn = None


def transcript(instructions: str | None, given: str | Iterable[InputItem] | None) -> Transcript:
    """Read the instructions and the input.

    Raises:
        RequestRefused: An item is not supported, or lacks what its type needs.
    """
    read = Transcript()
    if instructions:
        read.say("system", instructions)
    before = len(read.messages)
    if isinstance(given, str):
        read.say("user", given)
    else:
        for at, item in enumerate(given or ()):
            _add(read, item, f"input[{at}]")
        read.end_turn()
    if len(read.messages) == before:
        read.say("user", "")  # clients warm up so
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
            call = _call(item, path)
            turn = read.turn()
            read.ids.made(str(call.id), f"{path}.call_id")
            turn.calls.append(call)
        case "function_call_output" | "custom_tool_call_output":
            call_id = _needed(item.call_id, f"{path}.call_id")
            text = _text(read, item.output, f"{path}.output")
            read.ids.answered(call_id, f"{path}.call_id")
            read.say("tool", text, call_id)
        case "reasoning":
            if thought := _thought(read, item, path):
                read.turn().thoughts.append(thought)
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
        read.turn().texts.append(text)
    else:
        read.say(role, text)


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
