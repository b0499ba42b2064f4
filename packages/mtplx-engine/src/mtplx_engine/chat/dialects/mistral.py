"""Mistral's calls, in two forms.

`[TOOL_CALLS]get_weather[ARGS]{"city": "Rome"}`, the mark before each call; between name and
arguments some models write `[CALL_ID]` and an id, some nothing at all. Older models write one list:
`[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Rome"}}]`. All are read alike.
"""

from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.dialects.json_object import (
    call_rules,
    object_of,
    read_call,
    stream_arguments,
)
from mtplx_engine.chat.marks import quoted
from mtplx_engine.chat.scanning import Source, Steps
from mtplx_engine.tools import Tool

_CALLS, _ID, _ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"


def _read(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    yield from source.skip_space()
    match (yield from source.peek()):
        case "[":
            source.take(1)
            yield from _read_list(source, calls)
        case "{":
            yield from read_call(source, calls)
        case _:
            yield from _read_named(source, calls)


def _read_list(source: Source, calls: Numbering) -> Steps[None]:
    mark: str | None = ","
    while mark == ",":
        yield from read_call(source, calls)
        source.start_record()
        yield from source.skip_space()
        mark = yield from source.at((",", "]"))


def _read_named(source: Source, calls: Numbering) -> Steps[None]:
    name = yield from source.word("[{")
    yield from source.skip_space()
    if (yield from source.at((_ID,))) is not None:
        yield from source.skip_space()
        yield from source.word("[{")
        yield from source.skip_space()
    yield from source.at((_ARGS,))
    yield from source.skip_space()
    yield from stream_arguments(source, calls, name)


def _grammar_named(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    def write(name: str, arguments: str) -> str:
        call_id = f"({mark(_ID)} /[0-9A-Za-z]{{9}}/)?"
        return f"{mark(_CALLS)} {quoted(name)} {call_id} {mark(_ARGS)} {arguments}"

    calls = "call_one+" if parallel else "call_one"
    return "\n".join([f"calls: {calls}", *call_rules(tools, write)])


def _grammar_list(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    more = ' (", " call_one)*' if parallel else ""
    # Whether a space follows the mark is a matter of the tokenizer.
    rules = [f'calls: {mark(_CALLS)} " "? "[" call_one{more} "]"']
    return "\n".join([*rules, *call_rules(tools, object_of("arguments"))])


NAMED = Dialect(
    name="mistral",
    signature=(_CALLS, _ARGS),
    openers=(_CALLS,),
    read=_read,
    grammar=_grammar_named,
    marks=(_ID, _ARGS),
)
LIST = Dialect(
    name="mistral_list",
    signature=(_CALLS,),
    openers=(_CALLS,),
    read=_read,
    grammar=_grammar_list,
)
