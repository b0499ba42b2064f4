"""Calls whose arguments stand between tags, each value as it is: what the dialects have in common.

A value has no type of its own, so the tool's schema decides: a string is taken literally, anything
else is read as JSON, or as Python writes it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mtplx_engine.chat.dialects.alternatives import json_kind
from mtplx_engine.chat.dialects.base import Mark, Numbering
from mtplx_engine.chat.dialects.free_text import text_terminal
from mtplx_engine.chat.dialects.literals import escaped, whole_literal
from mtplx_engine.chat.dialects.parameters import (
    Parameter,
    key_rules,
    parameters_of,
    repeated,
    types_of,
)
from mtplx_engine.chat.scanning import Malformed, Source, Steps
from mtplx_engine.tools import Tool

_BEGINNINGS = {
    "null": "nN",
    "boolean": "tfTF",
    "integer": "-+.0123456789",
    "number": "-+.0123456789",
    "object": "{",
    "array": "[(",
}


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of a dialect.

    Attributes:
        key: Before a key.
        key_end: Behind it.
        value: Before a value, behind white space; empty where that follows at once.
        value_end: Behind a value. It may be missing if the next tag begins a line.
        closes: What ends a call, first the proper tag.
        gap: What is written between tags, in Lark.
        padded: Whether one line feed before and one behind a value belong to the tags.
    """

    key: str
    key_end: str
    value_end: str
    closes: tuple[str, ...]
    value: str = ""
    gap: str = '"\\n"'
    padded: bool = False

    @property
    def ends(self) -> tuple[str, ...]:
        """What ends a value."""
        early = (f"\n{tag}" for tag in (self.key, *self.closes))
        padded = (f"\n{self.value_end}",) if self.padded else ()
        return (self.value_end, *padded, *early)


def read_inside(source: Source, end: str) -> Steps[str]:
    """Take a name or a key, and the end of the tag that it is in.

    Raises:
        Malformed: It is empty, or the tag does not end on its line.
    """
    text, mark = yield from source.until((end, "\n"))
    if mark != end or not text.strip():
        raise Malformed("A tag has no name or no end.")
    return text.strip()


def read_key(source: Source, tags: Tags) -> Steps[str | None]:
    """Take white space and the next key with its tags, or what closes the call: None.

    Raises:
        Malformed: Something else stands here.
    """
    yield from source.skip_space()
    marks = (tags.key, *tags.closes)
    mark = yield from source.at(marks)
    if mark is None:
        if source.ended and any(each.startswith(source.held) for each in marks):
            source.take(len(source.held))  # the text ends amid the tag
        raise Malformed("Neither a key nor the end of the call follows.")
    return (yield from _key_behind(source, tags, mark))


def _key_behind(source: Source, tags: Tags, mark: str) -> Steps[str | None]:
    if mark != tags.key:
        return None
    key = yield from read_inside(source, tags.key_end)
    yield from expect_value(source, tags)
    return key


def expect_value(source: Source, tags: Tags) -> Steps[None]:
    """Take what stands between a key and its value."""
    if tags.value:
        yield from source.skip_space()
        yield from source.expect(tags.value)
    if tags.padded:
        yield from source.at(("\n",))


def read_arguments(
    source: Source, calls: Numbering, name: str, tool: Tool | None, tags: Tags, key: str | None
) -> Steps[None]:
    """Take a call up to its end, and report it.

    Args:
        source: What to read from, where the first value begins, or behind the call without any.
        calls: Numbers the call.
        name: Of what is called.
        tool: The same, where it is known.
        tags: Of the dialect.
        key: Of the first value; None: the call has no arguments.

    Raises:
        Malformed: A tag is missing.
    """
    yield calls.start(name)
    yield calls.delta("{")
    separator = ""
    while key is not None:
        yield calls.delta(f'{separator}"{escaped(key)}": ')
        end = yield from _stream_value(source, calls, types_of(tool, key), tags)
        behind = end.removeprefix("\n")
        if behind == tags.value_end:
            key = yield from read_key(source, tags)
        else:
            key = yield from _key_behind(source, tags, behind)
        separator = ", "
    yield calls.delta("}")
    yield calls.end()


def _stream_value(source: Source, calls: Numbering, types: set[str], tags: Tags) -> Steps[str]:
    """Take a value and what ends it; return that."""
    begin = yield from source.peek()
    if "string" in types and not any(begin in _BEGINNINGS.get(each, "") for each in types):
        yield calls.delta('"')
        end = yield from source.stream_until(
            tags.ends, lambda text: calls.delta(escaped(text)), cut=True
        )
        closing = '"'
    else:
        text, end = yield from source.until(tags.ends)
        closing = _typed(text, types)
    if end is None:
        raise Malformed("The text ends inside a value.")
    yield calls.delta(closing)
    return end


def _typed(text: str, types: set[str]) -> str:
    """The JSON of a value that was read whole."""
    value = whole_literal(text)
    if value is None:
        return f'"{escaped(text)}"'
    found = json_kind(value)
    allowed = found in types or (found == "integer" and "number" in types)
    return value if allowed or "string" not in types else f'"{escaped(text)}"'


def call_rules(
    tools: Sequence[Tool], tags: Tags, mark: Mark, begin: Callable[[str], str]
) -> list[str]:
    """Lark rules for `call_one`, a call of any of these tools.

    Args:
        tools: What may be called.
        tags: Of the dialect.
        mark: Writes tags.
        begin: Makes Lark of a tool's name: all before the first key, without the gap there.

    Raises:
        InvalidRequest: The arguments of a tool cannot be written so.
    """
    rules = ["call_one: " + " | ".join(f"call_{at}" for at in range(len(tools)))]
    for at, tool in enumerate(tools):
        inside: list[str] = []
        for number, parameter in enumerate(parameters_of(tool)):
            rule = f"call_{at}_{number}"
            rules += _parameter_rules(rule, parameter, tags, mark)
            inside.append(rule if parameter.required else f"{rule}?")
        parts = [begin(tool.name), tags.gap, *inside, mark(tags.closes[0])]
        rules.append(f"call_{at}: {' '.join(parts)}")
    return rules


def _parameter_rules(rule: str, parameter: Parameter, tags: Tags, mark: Mark) -> list[str]:
    key, rules = key_rules(rule, parameter, (tags.key_end,), spaced=True)
    pad = '"\\n"' if tags.padded else ""
    between = f"{tags.gap} {mark(tags.value)}" if tags.value else pad
    key = f"{mark(tags.key)} {key} {mark(tags.key_end)}"
    rules += repeated(rule, parameter, f"{key} {between} {rule}_value {tags.gap}", "")
    value_end = mark(tags.value_end)
    as_json = f"{rule}_json {pad} {value_end}"
    if not parameter.texts:
        return [*rules, f"{rule}_value: {as_json}", f"{rule}_json: {parameter.json()}"]
    text, rest = text_terminal(parameter, tags.ends)
    # A terminal does not end before it must: what ends it belongs to it, unless that is a token.
    inside, behind = (value_end, "") if value_end.startswith('"') else ("", value_end)
    rules.append(f"{rule.upper()}: ({text}) {pad} {inside}")
    if rest:
        rules.append(f"{rule}_json: {parameter.json(rest)}")
    choice = f" | {as_json}" if rest else ""
    return [*rules, f"{rule}_value: {rule.upper()} {behind}{choice}"]
