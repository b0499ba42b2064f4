"""DeepSeek's calls, in two forms that are read alike.

Both have marks around each call and around all calls. V3 and R1 write `function`, a separator, the
name, and the arguments as a fenced block of JSON. V3.1 writes the name, the separator, and the
arguments as they are.
"""

from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.dialects.json_object import call_rules, read_arguments
from mtplx_engine.chat.marks import quoted
from mtplx_engine.chat.scanning import Source, Steps
from mtplx_engine.tools import Tool


def _token(words: str) -> str:
    """Such tokens have bars of full width, and blocks for spaces."""
    return "<\uff5c" + words.replace(" ", "\u2581") + "\uff5c>"


_CALLS, _CALLS_END = _token("tool calls begin"), _token("tool calls end")
_CALL, _CALL_END = _token("tool call begin"), _token("tool call end")
_SEPARATOR = _token("tool sep")
_KIND = "function"
_FENCE, _FENCE_END = "```json", "```"


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
    name = yield from source.word("<")
    yield from source.skip_space()
    yield from source.expect(_SEPARATOR)
    if name == _KIND:  # the older form, unless that is the name of a tool
        name = (yield from source.word('`{<"')) or _KIND
    yield from source.skip_space()
    if (yield from source.at((_FENCE, _FENCE_END))) is None:
        yield from read_arguments(source, calls, name, _CALL_END)
        return
    yield from read_arguments(source, calls, name, _FENCE_END)
    yield from source.skip_space()
    yield from source.at((_CALL_END,))


def _section(parallel: bool, between: str, mark: Mark) -> str:
    more = f" ({between} call_one)*" if parallel else ""
    return f"calls: {mark(_CALLS)} call_one{more} {mark(_CALLS_END)}"


def _grammar_v3(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    def write(name: str, arguments: str) -> str:
        begin = f'{mark(_CALL)} "{_KIND}" {mark(_SEPARATOR)} {quoted(name)}'
        fenced = f'"\\n{_FENCE}\\n" {arguments} "\\n{_FENCE_END}"'
        return f"{begin} {fenced} {mark(_CALL_END)}"

    return "\n".join([_section(parallel, '"\\n"', mark), *call_rules(tools, write)])


def _grammar_v31(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    def write(name: str, arguments: str) -> str:
        begin = f"{mark(_CALL)} {quoted(name)} {mark(_SEPARATOR)}"
        return f"{begin} {arguments} {mark(_CALL_END)}"

    return "\n".join([_section(parallel, "", mark), *call_rules(tools, write)])


V3 = Dialect(
    name="deepseek_v3",
    signature=(_SEPARATOR, _FENCE),
    openers=(_CALLS, _CALL),
    read=_read,
    grammar=_grammar_v3,
    marks=(_CALLS_END, _SEPARATOR, _CALL_END),
)
V31 = Dialect(
    name="deepseek_v31",
    signature=(_SEPARATOR,),
    openers=(_CALLS, _CALL),
    read=_read,
    grammar=_grammar_v31,
    marks=(_CALLS_END, _SEPARATOR, _CALL_END),
)
