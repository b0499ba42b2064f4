"""The calls of Qwen 3 Coder, Qwen 3.5 and others, in tags with a value on lines of its own.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Rome
    </parameter>
    </function>
    </tool_call>

Models sometimes forget the outer opening tag, or what ends a value.
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

_OPEN, _CLOSE, _FUNCTION = "<tool_call>", "</tool_call>", "<function="
_TAGS = Tags(
    key="<parameter=",
    key_end=">",
    value_end="</parameter>",
    closes=("</function>", _CLOSE),
    padded=True,
)


def _read(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    if opener == _OPEN:
        yield from source.skip_space()
        yield from source.expect(_FUNCTION)
    name = yield from read_inside(source, ">")
    key = yield from read_key(source, _TAGS)
    yield from read_arguments(source, calls, name, tools.get(name), _TAGS, key)
    source.start_record()
    yield from source.skip_space()
    yield from source.at((_CLOSE,))


def _grammar(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    def begin(name: str) -> str:
        check_word(name, ">")
        return quoted(f"{_FUNCTION}{name}>")

    more = ' ("\\n" call_tagged)*' if parallel else ""
    rules = [f"calls: call_tagged{more}"]
    rules.append(f'call_tagged: {mark(_OPEN)} "\\n" call_one "\\n" {mark(_CLOSE)}')
    return "\n".join([*rules, *call_rules(tools, _TAGS, mark, begin)])


DIALECT = Dialect(
    name="qwen_xml",
    signature=(_FUNCTION, _TAGS.key),
    openers=(_OPEN, _FUNCTION),
    read=_read,
    grammar=_grammar,
    marks=(_CLOSE,),
)
