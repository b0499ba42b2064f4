"""The calls of GLM 4.5 and later.

`<tool_call>get_weather<arg_key>city</arg_key><arg_value>Rome</arg_value></tool_call>`; up to 4.6
with a line feed behind the name and behind each tag that ends something.
"""

from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.dialects.parameters import check_word
from mtplx_engine.chat.dialects.tagged import (
    Tags,
    call_rules,
    expect_value,
    read_arguments,
    read_key,
)
from mtplx_engine.chat.marks import quoted
from mtplx_engine.chat.scanning import Malformed, Source, Steps
from mtplx_engine.tools import Tool

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_TAGS = Tags(
    key="<arg_key>",
    key_end="</arg_key>",
    value="<arg_value>",
    value_end="</arg_value>",
    closes=(_CLOSE,),
    gap='"\\n"?',
)


def _read(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    yield from source.skip_space()
    name = yield from source.word("<")
    yield from source.skip_space()
    bare_key = yield from source.word("<")
    if bare_key:
        yield from source.expect(_TAGS.key_end)
    key: str | None
    if bare_key or (yield from source.at((_TAGS.key_end,))) is not None:
        name, key = _split(name + bare_key, tools)
        yield from expect_value(source, _TAGS)
    elif name:
        key = yield from read_key(source, _TAGS)
    else:
        raise Malformed("The call has no name.")
    yield from read_arguments(source, calls, name, tools.get(name), _TAGS, key)
    source.start_record()


def _split(text: str, tools: Tools) -> tuple[str, str]:
    """A name and a key with no tag between them, which models forget at times.

    Raises:
        Malformed: No tool has such a name.
    """
    names = [name for name in tools if text.startswith(name) and name != text]
    if not names:
        raise Malformed("The tag before the first key is missing.")
    name = max(names, key=len)
    return name, text.removeprefix(name)


def _grammar(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    def begin(name: str) -> str:
        check_word(name, "<")
        return quoted(name)

    more = f" ({_TAGS.gap} call_tagged)*" if parallel else ""
    rules = [f"calls: call_tagged{more}", f"call_tagged: {mark(_OPEN)} call_one"]
    return "\n".join([*rules, *call_rules(tools, _TAGS, mark, begin)])


DIALECT = Dialect(
    name="glm",
    signature=(_TAGS.key, _TAGS.value),
    openers=(_OPEN,),
    read=_read,
    grammar=_grammar,
    marks=(_CLOSE, _TAGS.key, _TAGS.key_end, _TAGS.value, _TAGS.value_end),
)
