"""The calls of Llama 3: an answer that is nothing but JSON, without any mark.

`{"name": "get_weather", "parameters": {"city": "Rome"}}`, after `<|python_tag|>` at times. Further
calls follow behind a semicolon or on a new line. Since an answer may as well be JSON that is no
call, only an object that names a tool and has arguments counts.
"""

from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.dialects.json_object import call_rules, object_of, read_call, read_members
from mtplx_engine.chat.scanning import Malformed, Source, Steps
from mtplx_engine.tools import Tool

_TAG, _OBJECT = "<|python_tag|>", "{"


def _read(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    if opener == _TAG:
        yield from read_call(source, calls, tools)
    else:
        yield from read_members(source, calls, tools)
    while (yield from _another(source)):
        yield from read_members(source, calls, tools)


def _another(source: Source) -> Steps[bool]:
    """Take what is between two calls, and the next one's brace."""
    source.start_record()
    yield from source.skip_space()
    separator = yield from source.at((";",))
    yield from source.skip_space()
    if (yield from source.at((_OBJECT,))) is not None:
        return True
    if separator is not None:
        raise Malformed("No call follows the semicolon.")
    return False


def _grammar(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    calls = 'call_one ("; " call_one)*' if parallel else "call_one"
    return "\n".join([f"calls: {calls}", *call_rules(tools, object_of("parameters"))])


DIALECT = Dialect(
    name="llama3",
    signature=('{"name": function name, "parameters": ',),
    openers=(_OBJECT, _TAG),
    read=_read,
    grammar=_grammar,
    bare=True,
)
