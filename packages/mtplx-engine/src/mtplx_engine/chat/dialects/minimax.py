"""The calls of MiniMax M2.

    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Rome</parameter>
    </invoke>
    </minimax:tool_call>

A section may hold several calls.
"""

from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.dialects.parameters import check_word
from mtplx_engine.chat.dialects.tagged import (
    Tags,
    call_rules,
    read_arguments,
    read_inside,
    read_key,
)
from mtplx_engine.chat.marks import quoted
from mtplx_engine.chat.scanning import Source, Steps
from mtplx_engine.tools import Tool

_OPEN, _CLOSE = "<minimax:tool_call>", "</minimax:tool_call>"
_INVOKE, _INVOKE_END = '<invoke name="', '">'
_TAGS = Tags(
    key='<parameter name="',
    key_end='">',
    value_end="</parameter>",
    closes=("</invoke>", _CLOSE),
)


def _read(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    yield from source.skip_space()
    yield from source.expect(_INVOKE)
    further: str | None = _INVOKE
    while further == _INVOKE:
        name = yield from read_inside(source, _INVOKE_END)
        key = yield from read_key(source, _TAGS)
        yield from read_arguments(source, calls, name, tools.get(name), _TAGS, key)
        yield from source.skip_space()
        further = yield from source.at((_INVOKE, _CLOSE))
        source.start_record(further or "")


def _grammar(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    def begin(name: str) -> str:
        check_word(name, _INVOKE_END)
        return quoted(f"{_INVOKE}{name}{_INVOKE_END}")

    more = ' ("\\n" call_one)*' if parallel else ""
    rules = [f'calls: {mark(_OPEN)} "\\n" call_one{more} "\\n" {mark(_CLOSE)}']
    return "\n".join([*rules, *call_rules(tools, _TAGS, mark, begin)])


DIALECT = Dialect(
    name="minimax",
    signature=(_OPEN, _INVOKE),
    openers=(_OPEN,),
    read=_read,
    grammar=_grammar,
    marks=(_CLOSE,),
)
