"""The calls of Kimi K2.

`<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Rome"}`, and an end
mark for each call and for the section of all. The number counts the calls of a conversation.
"""

import re
from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.dialects.json_object import call_rules, read_arguments
from mtplx_engine.chat.marks import quoted
from mtplx_engine.chat.scanning import Malformed, Source, Steps
from mtplx_engine.tools import Tool

_CALLS, _CALLS_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_CALL, _CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_ID = re.compile(r"(?:functions\.)?(.+?)(?::\d+)?")


def _read(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    if opener == _CALLS:
        yield from source.skip_space()
        yield from source.expect(_CALL)
    further: str | None = _CALL
    while further == _CALL:
        yield from _read_call(source, calls)
        source.start_record()
        yield from source.skip_space()
        further = yield from source.at((_CALL, _CALLS_END))


def _read_call(source: Source, calls: Numbering) -> Steps[None]:
    yield from source.skip_space()
    call_id = _ID.fullmatch((yield from source.word("<")))
    if call_id is None:
        raise Malformed("The call has no name.")
    yield from source.skip_space()
    yield from source.expect(_ARGUMENTS)
    yield from read_arguments(source, calls, call_id[1], _CALL_END)


def _grammar(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    def write(name: str, arguments: str) -> str:
        call_id = f"{quoted(f'functions.{name}:')} /[0-9]{{1,4}}/"
        return f"{mark(_CALL)} {call_id} {mark(_ARGUMENTS)} {arguments} {mark(_CALL_END)}"

    calls = "call_one+" if parallel else "call_one"
    rules = [f"calls: {mark(_CALLS)} {calls} {mark(_CALLS_END)}"]
    return "\n".join([*rules, *call_rules(tools, write)])


DIALECT = Dialect(
    name="kimi",
    signature=(_CALLS, _ARGUMENTS),
    openers=(_CALLS, _CALL),
    read=_read,
    grammar=_grammar,
    marks=(_CALLS_END, _CALL_END, _ARGUMENTS),
)
