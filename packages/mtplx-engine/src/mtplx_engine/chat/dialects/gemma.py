"""The calls of Gemma 4 and FunctionGemma, with keys that have no quotes and marks around strings.

`<|tool_call>call:get_weather{city:<|"|>Rome<|"|>,days:2}<tool_call|>`. FunctionGemma has other
marks; around strings it writes `<escape>`.
"""

from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.dialects.free_text import string_terminal
from mtplx_engine.chat.dialects.literals import KEY_STOPS, stream_literal
from mtplx_engine.chat.dialects.parameters import (
    Parameter,
    check_word,
    in_order,
    key_rules,
    parameters_of,
    repeated,
)
from mtplx_engine.chat.marks import quoted
from mtplx_engine.chat.scanning import Malformed, Source, Steps
from mtplx_engine.tools import Tool

_NAME_STOPS = '{}<>"'
_NO_STRING = ({"type": ["object", "array", "number", "boolean", "null"]},)


def _dialect(name: str, opener: str, closer: str, delimiter: str) -> Dialect:
    def read(source: Source, _: str, calls: Numbering, tools: Tools) -> Steps[None]:
        yield from source.skip_space()
        yield from source.expect("call:")
        called = yield from source.word(_NAME_STOPS)
        yield from source.skip_space()
        if not called or (yield from source.peek()) != "{":
            raise Malformed("The call has no name or no arguments.")
        yield calls.start(called)
        yield from stream_literal(source, calls.delta, delimiter)
        yield calls.end()
        source.start_record()
        yield from source.skip_space()
        yield from source.at((closer,))

    def grammar(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
        rules = [f"calls: call_marked{'+' if parallel else ''}"]
        rules.append(f'call_marked: {mark(opener)} "call:" call_one {mark(closer)}')
        return "\n".join([*rules, *_call_rules(tools, delimiter, mark(delimiter))])

    return Dialect(
        name=name,
        signature=(opener, delimiter),
        openers=(opener,),
        read=read,
        grammar=grammar,
        marks=(closer, delimiter),
    )


def _call_rules(tools: Sequence[Tool], delimiter: str, spelled: str) -> list[str]:
    rules = ["call_one: " + " | ".join(f"call_{at}" for at in range(len(tools)))]
    for at, tool in enumerate(tools):
        check_word(tool.name, _NAME_STOPS)
        parameters = parameters_of(tool)
        for number, parameter in enumerate(parameters):
            rules += _parameter_rules(f"call_{at}_{number}", parameter, delimiter, spelled)
        inside = in_order(parameters, f"call_{at}_", ",")
        rules.append(f'call_{at}: {quoted(tool.name + "{")} {inside} "}}"')
    return rules


def _parameter_rules(rule: str, parameter: Parameter, delimiter: str, spelled: str) -> list[str]:
    """Lark rules for a parameter: a string between delimiters, anything else as JSON."""
    key, rules = key_rules(rule, parameter, KEY_STOPS + ":")
    values: list[str] = []
    if parameter.texts:
        # What ends a terminal belongs to it, unless that is a token.
        inside, behind = (spelled, "") if spelled.startswith('"') else ("", spelled)
        text = string_terminal(parameter, (delimiter,))
        rules.append(f"{rule.upper()}: ({text}) {inside}")
        values.append(f"{spelled} {rule.upper()} {behind}")
    if parameter.others or parameter.is_any:
        others = (parameter.others or _NO_STRING) if parameter.texts else None
        rules.append(f"{rule}_json: {parameter.json(others)}")
        values.append(f"{rule}_json")
    body = f'{key} ":" ({" | ".join(values)})'
    return [*repeated(rule, parameter, body, '","'), *rules]


GEMMA4 = _dialect("gemma4", "<|tool_call>", "<tool_call|>", '<|"|>')
FUNCTION_GEMMA = _dialect(
    "function_gemma", "<start_function_call>", "<end_function_call>", "<escape>"
)
