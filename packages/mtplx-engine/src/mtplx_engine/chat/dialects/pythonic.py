"""Calls as Python writes them, in a list: LFM2 with marks around it, Llama without.

`<|tool_call_start|>[get_weather(city="Rome", days=2)]<|tool_call_end|>`. Without marks, only what
begins the answer and names a tool is a call.
"""

from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.dialects.json_object import read_call
from mtplx_engine.chat.dialects.literals import KEY_STOPS, stream_keywords
from mtplx_engine.chat.dialects.parameters import (
    check_word,
    in_order,
    key_rules,
    parameters_of,
    repeated,
)
from mtplx_engine.chat.marks import quoted
from mtplx_engine.chat.scanning import Malformed, Source, Steps
from mtplx_engine.tools import Tool

_OPEN, _CLOSE = "<|tool_call_start|>", "<|tool_call_end|>"
_PYTHON, _PYTHON_END = "<|python_start|>", "<|python_end|>"
_NAME_STOPS = "()[]{}<>\"'=,"


def _read_list(source: Source, calls: Numbering, only: Tools | None) -> Steps[None]:
    """Take calls with commas between them, and the closing bracket, which may be missing."""
    further: str | None = ","
    while further == ",":
        yield from source.skip_space()
        if (yield from source.peek()) == "{":
            # Where the prompt asks for JSON, models put that into the list.
            yield from read_call(source, calls, only)
        else:
            yield from _read_call(source, calls, only)
        source.start_record()
        yield from source.skip_space()
        further = yield from source.at((",", "]"))


def _read_call(source: Source, calls: Numbering, only: Tools | None) -> Steps[None]:
    name = yield from source.word(_NAME_STOPS)
    yield from source.skip_space()
    yield from source.expect("(")
    if not name or (only is not None and name not in only):
        raise Malformed("The call names no tool.")
    yield calls.start(name)
    yield from stream_keywords(source, calls.delta)
    yield calls.end()


def _read(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    yield from source.skip_space()
    yield from source.expect("[")
    yield from _read_list(source, calls, None)
    yield from source.skip_space()
    yield from source.at((_CLOSE,))


def _read_bare(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    yield from _read_list(source, calls, tools)
    yield from source.skip_space()
    yield from source.at((_PYTHON_END,))


def _calls(tools: Sequence[Tool], parallel: bool, opener: str, closer: str) -> str:
    """Lark rules for a list of calls, with values as JSON."""
    more = ' (", " call_one)*' if parallel else ""
    rules = [f"calls: {opener} call_one{more} {closer}"]
    rules.append("call_one: " + " | ".join(f"call_{at}" for at in range(len(tools))))
    for at, tool in enumerate(tools):
        check_word(tool.name, _NAME_STOPS)
        parameters = parameters_of(tool)
        for number, parameter in enumerate(parameters):
            rule = f"call_{at}_{number}"
            key, more_rules = key_rules(rule, parameter, KEY_STOPS + "=")
            rules += [*more_rules, *repeated(rule, parameter, f'{key} "=" {rule}_json', '", "')]
            rules.append(f"{rule}_json: {parameter.json()}")
        inside = in_order(parameters, f"call_{at}_", ", ")
        rules.append(f'call_{at}: {quoted(tool.name + "(")} {inside} ")"')
    return "\n".join(rules)


def _grammar(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    return _calls(tools, parallel, f'{mark(_OPEN)} "["', f'"]" {mark(_CLOSE)}')


def _grammar_bare(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    return _calls(tools, parallel, mark("["), '"]"')


LFM2 = Dialect(
    name="lfm2",
    signature=("List of tools: ", "<|im_start|>"),
    openers=(_OPEN,),
    read=_read,
    grammar=_grammar,
    marks=(_CLOSE,),
)
LLAMA = Dialect(
    name="llama_pythonic",
    signature=("[func_name1(",),
    openers=("[", f"{_PYTHON}["),
    read=_read_bare,
    grammar=_grammar_bare,
    bare=True,
    marks=(_PYTHON, _PYTHON_END),
)
