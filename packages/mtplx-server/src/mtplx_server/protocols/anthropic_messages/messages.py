"""The messages of a Messages request, in the engine's vocabulary."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from mtplx_client.wire.anthropic import CountTokensRequest, InputBlock, InputMessage, InputText
from mtplx_engine.conversation import Message
from mtplx_engine.tools import ToolCall
from mtplx_server.errors import bad_request
from mtplx_server.protocols.anthropic_messages.fields import without_effect
from mtplx_server.protocols.history import Calls
from mtplx_server.protocols.tools import unsupported_part

# Differs from one request to the next, so no prefix would ever be shared.
_BILLING = "x-anthropic-billing-header"
# What may stand where.
_KINDS = {
    "system": ("text",),
    "user": ("text", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use"),
}
_ALL_KINDS = {kind for kinds in _KINDS.values() for kind in kinds}

# What is read of each; others are refused.
_READ = {
    "text": ("text",),
    "thinking": ("thinking",),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id", "content", "is_error"),
}

Located = tuple[InputBlock, str]  # a block and its path


def messages(body: CountTokensRequest) -> tuple[Message, ...]:
    """The conversation.

    Raises:
        RequestRefused: It holds what is not supported, or lacks what it needs.
    """
    if not body.messages:
        raise bad_request("messages must hold at least one message.", param="messages")
    read = [*_system(body.system)]
    calls = Calls()
    for at, given in enumerate(body.messages):
        read += _turn(given, f"messages[{at}]", calls)
    return tuple(read)


def _system(given: str | Sequence[InputText] | None) -> Iterator[Message]:
    if isinstance(given, str):
        text = given
    else:
        blocks = [
            _checked_text(block, f"system[{at}]")
            for at, block in enumerate(given or ())
            if not (block.text or "").startswith(_BILLING)
        ]
        text = "\n".join(blocks)
    if text:
        yield Message("system", text)


def _turn(given: InputMessage, path: str, calls: Calls) -> Iterable[Message]:
    if given.role not in _KINDS:
        text = f"{path}.role must be one of {', '.join(_KINDS)}; got {given.role!r}."
        raise bad_request(text, param=f"{path}.role")
    if isinstance(given.content, str):
        blocks = [(InputBlock(type="text", text=given.content), f"{path}.content")]
    else:
        blocks = [(each, f"{path}.content[{at}]") for at, each in enumerate(given.content)]
    for block, where in blocks:
        _check_kind(block, given.role, where)
    match given.role:
        case "assistant":
            return (_assistant(blocks, calls),)
        case "user":
            return _user(blocks, calls)
        case _:
            return (Message("system", _lines(blocks)),)


def _check_kind(block: InputBlock, role: str, path: str) -> None:
    if block.type not in _ALL_KINDS:
        raise unsupported_part(block.type, path)
    if block.type not in _KINDS[role]:
        text = f"{path}: a block of type {block.type!r} cannot stand in a message of role {role!r}."
        raise bad_request(text, param=path)


def _assistant(blocks: Iterable[Located], calls: Calls) -> Message:
    """The blocks of an answer are pieces of one text, cut where it does other things."""
    texts: list[str] = []
    thoughts: list[str] = []
    called: list[ToolCall] = []
    calls.begin()
    for block, path in blocks:
        match block.type:
            case "text":
                texts.append(_checked_text(block, path))
            case "thinking":
                thoughts.append(_needed(block.thinking, f"{path}.thinking"))
            case "tool_use":
                called.append(_call(block, path, calls))
            case _:
                pass  # redacted thoughts: nobody here can read them
    return Message("assistant", "".join(texts), "".join(thoughts) or None, tuple(called))


def _call(block: InputBlock, path: str, calls: Calls) -> ToolCall:
    call_id, name = _needed(block.id, f"{path}.id"), _needed(block.name, f"{path}.name")
    if block.input is None:
        raise bad_request(f"{path}.input is missing.", param=f"{path}.input")
    calls.made(call_id, f"{path}.id")
    return ToolCall(name, json.dumps(block.input, ensure_ascii=False), call_id)


def _user(blocks: Sequence[Located], calls: Calls) -> Iterator[Message]:
    """Results become messages of their own; what stands between them stays there."""
    if not blocks:
        yield Message("user", "")
    for is_result, group in groupby(blocks, lambda located: located[0].type == "tool_result"):
        if is_result:
            for block, path in group:
                yield _result(block, path, calls)
        else:
            yield Message("user", _lines(group))


def _result(block: InputBlock, path: str, calls: Calls) -> Message:
    call_id = _needed(block.tool_use_id, f"{path}.tool_use_id")
    calls.answered(call_id, f"{path}.tool_use_id")
    where = f"{path}.content"
    match block.content:
        case str(text):
            pass
        case None:
            text = ""
        case dict():
            raise bad_request(f"{where} must be a string or a list of blocks.", param=where)
        case parts:
            text = "\n".join(_checked_text(part, f"{where}[{at}]") for at, part in enumerate(parts))
    return Message("tool", f"Error: {text}" if block.is_error else text, call_id=call_id)


def _lines(blocks: Iterable[Located]) -> str:
    return "\n".join(_checked_text(block, path) for block, path in blocks)


def _checked_text(block: InputText | InputBlock, path: str) -> str:
    if block.type != "text":
        raise unsupported_part(block.type, path)
    return _needed(block.text, f"{path}.text")


def _needed(value: str | None, path: str) -> str:
    if value is None:
        raise bad_request(f"{path} is missing.", param=path)
    return value


def ignored(body: CountTokensRequest) -> Iterator[str]:
    """Paths of all that has no effect."""
    for part in body.system if isinstance(body.system, list) else ():
        yield from (f"system[].{name}" for name in without_effect(part))
    for given in body.messages:
        yield from (f"messages[].{name}" for name in without_effect(given))
        if isinstance(given.content, list):
            for block in given.content:
                yield from _ignored_of(block)


def _ignored_of(block: InputBlock) -> Iterator[str]:
    path = "messages[].content[]"
    if block.type == "redacted_thinking":
        yield f"{path}.redacted_thinking"
        return
    yield from (f"{path}.{name}" for name in without_effect(block, _READ.get(block.type)))
    if isinstance(block.content, list):
        for part in block.content:
            yield from (f"{path}.content[].{name}" for name in without_effect(part))
