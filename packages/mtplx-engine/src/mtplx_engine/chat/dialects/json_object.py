"""Calls as JSON objects with a name and arguments: Hermes, Qwen 2.5 and 3, and many others.

`<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>`, with line feeds
inside the tags.
"""

import json
from collections.abc import Callable, Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.json_text import JSON_OPTIONS, read_json, stream_json, whole_json
from mtplx_engine.chat.marks import quoted
from mtplx_engine.chat.scanning import Malformed, Source, Steps
from mtplx_engine.tools import Tool

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_ARGUMENTS = ("arguments", "parameters")
_OTHERS = ("type", "id")


def read_call(source: Source, calls: Numbering, only: Tools | None = None) -> Steps[None]:
    """Take an object with a name and arguments, in either order; other keys are skipped.

    Args:
        source: What to read from.
        calls: Numbers the call.
        only: When given, the object may as well be no call: it must name one of these tools, have
            arguments and no keys that are strange in a call.

    Raises:
        Malformed: It is no such object.
    """
    yield from source.skip_space()
    yield from source.expect("{")
    yield from read_members(source, calls, only)


def read_members(source: Source, calls: Numbering, only: Tools | None = None) -> Steps[None]:
    """As `read_call`, from behind the opening brace on."""
    name, early, called = "", "", False
    mark: str | None = ","
    while mark == ",":
        key = yield from _key(source)
        if only is not None and key not in ("name", *_ARGUMENTS, *_OTHERS):
            raise Malformed("The object is no call.")
        if key == "name" and not called:
            name = _name((yield from read_json(source)), only)
        elif key in _ARGUMENTS and name and not called:
            yield from stream_arguments(source, calls, name)
            called = True
        elif key in _ARGUMENTS and not called:
            early = as_arguments((yield from read_json(source)))
        else:
            yield from read_json(source)
        yield from source.skip_space()
        mark = yield from source.at((",", "}"))
    if called:
        return
    # Without its end, arguments may still have been to come.
    if not name or mark is None or not (early or only is None):
        raise Malformed("The call lacks its name, its arguments or its end.")
    yield from call_whole(calls, name, early or "{}")


def _key(source: Source) -> Steps[str]:
    yield from source.skip_space()
    key = json.loads((yield from read_json(source)))
    yield from source.skip_space()
    yield from source.expect(":")
    yield from source.skip_space()
    return key if isinstance(key, str) else ""


def _name(text: str, only: Tools | None) -> str:
    name = json.loads(text)
    # Half of a surrogate pair is not printable, and cannot be sent to anybody.
    if not isinstance(name, str) or not name or not name.isprintable():
        raise Malformed("The name of the call is not a text.")
    if only is not None and name not in only:
        raise Malformed("The call names no tool.")
    return name


def stream_arguments(source: Source, calls: Numbering, name: str) -> Steps[None]:
    """Take the arguments of a call, which stand here, and report the call.

    Raises:
        Malformed: They are no object, nor anything that stands for one.
    """
    if not name:
        raise Malformed("The call has no name.")
    if (yield from source.peek()) == "{":
        yield calls.start(name)
        yield from stream_json(source, calls.delta)
        yield calls.end()
    else:
        yield from call_whole(calls, name, as_arguments((yield from read_json(source))))


def read_arguments(source: Source, calls: Numbering, name: str, closer: str) -> Steps[None]:
    """As `stream_arguments`, with white space around and what closes them.

    Where only that stands, there are no arguments; where it is missing, they were whole.
    """
    yield from source.skip_space()
    if name and (yield from source.at((closer,))) is not None:
        yield from call_whole(calls, name, "{}")
        return
    yield from stream_arguments(source, calls, name)
    yield from source.skip_space()
    yield from source.at((closer,))


def call_whole(calls: Numbering, name: str, arguments: str) -> Steps[None]:
    """Report a call at once."""
    yield calls.start(name)
    yield calls.delta(arguments)
    yield calls.end()


def as_arguments(text: str) -> str:
    """The JSON text of an object, also from null and from a text that holds one.

    Raises:
        Malformed: It is neither.
    """
    value = json.loads(text)
    if isinstance(value, str):
        text = whole_json(value)
        value = json.loads(text)
    if value is None:
        return "{}"
    if not isinstance(value, dict):
        raise Malformed("The arguments are not an object.")
    return text


def _read(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    yield from read_call(source, calls)
    yield from source.skip_space()
    yield from source.at((_CLOSE,))


def schema_of(tool: Tool) -> str:
    """The arguments of a tool as Lark: an object, with bounded white space."""
    none = {"properties": {}, "additionalProperties": False}
    schema = none if tool.parameters is None else tool.parameters
    options = {"x-guidance": JSON_OPTIONS}
    return f"%json {json.dumps({**schema, 'type': 'object', **options})}"


def call_rules(tools: Sequence[Tool], write: Callable[[str, str], str]) -> list[str]:
    """Lark rules for `call_one`, a call of any of these tools.

    Args:
        tools: What may be called.
        write: Makes Lark of a tool's name and the rule for its arguments.
    """
    rules = ["call_one: " + " | ".join(f"call_{at}" for at in range(len(tools)))]
    for at, tool in enumerate(tools):
        rules.append(f"call_{at}: {write(tool.name, f'call_args_{at}')}")
        rules.append(f"call_args_{at}: {schema_of(tool)}")
    return rules


def object_of(key: str) -> Callable[[str, str], str]:
    """Makes Lark of an object with a name and, under `key`, arguments; see `call_rules`."""

    def write(name: str, arguments: str) -> str:
        begin = quoted(f'{{"name": {json.dumps(name, ensure_ascii=False)}, "{key}": ')
        return f'{begin} {arguments} "}}"'

    return write


def _grammar(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    more = ' ("\\n" call_tagged)*' if parallel else ""
    rules = [f"calls: call_tagged{more}"]
    rules.append(f'call_tagged: {mark(_OPEN)} "\\n" call_one "\\n" {mark(_CLOSE)}')
    return "\n".join([*rules, *call_rules(tools, object_of("arguments"))])


DIALECT = Dialect(
    name="json_object",
    signature=(_OPEN, _CLOSE),
    openers=(_OPEN,),
    read=_read,
    grammar=_grammar,
    marks=(_CLOSE,),
)
