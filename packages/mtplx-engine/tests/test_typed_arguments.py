"""Dialects whose arguments stand between tags: which types their values get."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tagged_calls import GEMMA, TAGGED, WRITE, arguments, read, tool

from mtplx_engine.chat.calls import CallReader
from mtplx_engine.chat.dialects.base import Dialect
from mtplx_engine.chat.dialects.literals import whole_literal
from mtplx_engine.events import CallDelta
from mtplx_engine.tools import Tool

KEYWORDS = ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "properties", "x", "items")
SCALARS = st.sampled_from([None, True, 5, "string", "integer", "#", "#/properties/x", "a"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.sampled_from(KEYWORDS), inner)


tagged = pytest.mark.parametrize("dialect", TAGGED, ids=lambda dialect: dialect.name)
MAYBE = {"anyOf": [{"type": "string"}, {"type": "null"}]}
NUMBER_OR_TEXT = {"type": ["string", "number"]}
TYPED: list[tuple[Any, str, Any]] = [
    ({"type": "string"}, "5", "5"),
    ({"type": "string"}, "null", "null"),
    ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
    ({"type": "string"}, ' "quoted" ', ' "quoted" '),
    ({"type": "integer"}, "5", 5),
    ({"type": "integer"}, " 5 ", 5),
    ({"type": "integer"}, "-12345678901234567890", -12345678901234567890),
    ({"type": "integer"}, "five", "five"),
    ({"type": "integer"}, "", ""),
    ({"type": "number"}, "1.50", 1.5),
    ({"type": "boolean"}, "true", True),
    ({"type": "boolean"}, "False", False),
    ({"type": "null"}, "None", None),
    ({"type": "array"}, "[1, [true], 'x']", [1, [True], "x"]),
    ({"type": "object"}, '{"a": {"b": null}}', {"a": {"b": None}}),
    ({"type": "object"}, '{"a": "line\nfeed"}', {"a": "line\nfeed"}),
    ({"type": "object"}, '{"a": 1', '{"a": 1'),
    ({"type": "object"}, "[" * 5000, "[" * 5000),
    ({"type": "array"}, json.dumps([*range(3000)]), [*range(3000)]),
    ({"properties": {}}, "{}", {}),
    ({"$ref": "#/$defs/Point"}, '{"x": 1}', {"x": 1}),
    ({"$ref": "#/$defs/Name"}, "5", "5"),
    ({"allOf": [{"$ref": "#/$defs/Name"}]}, "5", "5"),
    ({"$ref": "#/$defs/Loop"}, "5", "5"),
    ({"$ref": "#/$defs/None"}, "5", "5"),
    ({"enum": ["5", "a"]}, "5", "5"),
    ({"enum": ["a", 5]}, "5", 5),
    ({"const": "5"}, "5", "5"),
    ({"const": 5}, "5", 5),
    (MAYBE, "null", None),
    (MAYBE, "None", None),
    (MAYBE, "5", "5"),
    (MAYBE, "nobody", "nobody"),
    (NUMBER_OR_TEXT, "5", 5),
    (NUMBER_OR_TEXT, "5 or 6", "5 or 6"),
    (NUMBER_OR_TEXT, "null", "null"),
    ({"type": ["string", "integer"]}, "5.5", "5.5"),
    ({"type": ["string", "object"]}, "{a}", "{a}"),
    ({"oneOf": [{"type": "string"}, {"type": "array"}]}, "[1]", [1]),
    ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "true", True),
    ({}, "5", "5"),
    (True, "5", "5"),
    (None, "5", "5"),
    ({"type": "text"}, "5", "5"),
    ({"type": 3, "enum": ["5", 5], "allOf": [{"enum": 3}, {"type": []}]}, "5", "5"),
    ({"type": {}, "enum": 3, "anyOf": 1, "allOf": "a", "$ref": []}, "5", "5"),
]
DEFS = {
    "Point": {"type": "object"},
    "Name": {"$ref": "#/$defs/Text"},
    "Text": {"type": "string"},
    "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"$ref": "#/$defs/Text"}]},
}


@tagged
@pytest.mark.parametrize(("schema", "text", "value"), TYPED)
def test_a_schema_decides_what_a_value_is(
    dialect: Dialect, schema: Any, text: str, value: Any
) -> None:
    answer, tools = WRITE[dialect.name](text), [tool({"x": schema}, **{"$defs": DEFS})]
    for pieces in ([answer], list(answer)):
        reader = CallReader(dialect, tools)
        events = [event for piece in pieces for event in reader.feed(piece)]
        (found,) = arguments([*events, *reader.close(limited=False)])
        assert found == {"x": value}
        assert type(found["x"]) is type(value)


@tagged
def test_a_schema_may_be_anything_or_nothing(dialect: Dialect) -> None:
    extra = {"additionalProperties": {"type": "integer"}}
    for parameters, value in [
        (None, "5"),
        ({"$ref": "#/$defs/F", "$defs": {"F": {"properties": {"x": {"type": "integer"}}}}}, 5),
        (extra, 5),
        ({"properties": [], "required": 3}, "5"),
        ({"allOf": [{"type": "object"}, {"type": "string"}]}, "5"),
    ]:
        events = read(dialect, [Tool("f", parameters=parameters)], WRITE[dialect.name]("5"))
        assert arguments(events) == [{"x": value}]


def test_schemas_that_repeat_themselves_are_read_in_no_time() -> None:
    nested: Any = {"type": "integer"}
    for _ in range(300):
        nested = {"anyOf": [nested]}
    twice = {f"D{at}": {"anyOf": [{"$ref": f"#/$defs/D{at + 1}"}] * 2} for at in range(40)}
    for schema in (nested, {"$ref": "#/$defs/D0"}, {"allOf": [{"$ref": "#/$defs/D0"}] * 40}):
        tools = [tool({"x": schema}, **{"$defs": twice})]
        assert arguments(read(TAGGED[0], tools, WRITE["qwen_xml"]("5"))) == [{"x": "5"}]


@given(parameters=st.recursive(SCALARS, lambda inner: st.lists(inner) | schemas(inner)))
@settings(max_examples=300, deadline=None)
def test_any_json_is_taken_for_a_schema(parameters: Any) -> None:
    for schema in (
        parameters,
        {"properties": {"x": parameters}, "additionalProperties": parameters},
    ):
        tools = [
            Tool("f", parameters=schema if isinstance(schema, dict) else {"properties": schema})
        ]
        assert len(arguments(read(TAGGED[0], tools, WRITE["qwen_xml"]("5")))) == 1


@tagged
def test_a_string_is_shown_while_it_is_written(dialect: Dialect) -> None:
    for schema in ({"type": "string"}, MAYBE):
        answer = WRITE[dialect.name]("abcdef")
        reader = CallReader(dialect, [tool({"x": schema})])
        events = reader.feed(answer[: answer.index("def")])
        assert "".join(e.text for e in events if isinstance(e, CallDelta)) == '{"x": "abc'


@tagged
def test_a_cut_call_shows_nothing_of_what_would_end_its_value(dialect: Dialect) -> None:
    answer = WRITE[dialect.name]("abc<d")
    begin = answer.index("abc<d")
    for end in range(begin + 5, len(answer)):
        reader = CallReader(dialect, [tool({"x": {"type": "string"}})])
        events = [*reader.feed(answer[:end]), *reader.close(limited=True)]
        text = "".join(event.text for event in events if isinstance(event, CallDelta))
        assert text in ('{"x": "abc<d', '{"x": "abc<d"', '{"x": "abc<d"}')


@pytest.mark.parametrize("dialect", GEMMA, ids=lambda dialect: dialect.name)
def test_a_cut_string_shows_nothing_of_its_delimiter(dialect: Dialect) -> None:
    mark = dialect.marks[-1]
    for size in range(len(mark)):
        reader = CallReader(dialect, [tool({"x": {"type": "string"}})])
        answer = f"{dialect.openers[0]}call:f{{x:{mark}abc{mark[:size]}"
        events = [*reader.feed(answer), *reader.close(limited=True)]
        text = "".join(event.text for event in events if isinstance(event, CallDelta))
        assert text == '{"x": "abc'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': 1, 2: (True, None,),}", '{"a": 1, "2": [true, null]}'),
        ("[-0x10, 1_000, .5, 1., +7, 1e5, 007]", "[-16, 1000, 0.5, 1.0, 7, 1e5, 7.0]"),
        (r"'\'\"\x41\101\t\v\0'", r'"' + r"'\"AA\t\u000b\u0000" + '"'),
        (r"'\u00e9 \ud83c\udfd4 \ud83c \U0001F3D4'", r'"\u00e9 \ud83c\udfd4 \ud83c 🏔"'),
        (r"'\d \N{DIGIT ONE} \xZ \u12'", r'"\\d \\N{DIGIT ONE} \\xZ \\u12"'),
        (r"'\/ \U00110000 \U0000d83c'", r'"/ \\U00110000 \ud83c"'),
        ("'a\\\nb\nc'", r'"ab\nc"'),
        ('"""a"b""c"""', r'"a\"b\"\"c"'),
        ("[[], {}, (), '', \"\"]", '[[], {}, [], "", ""]'),
        (" [1]\n", "[1]"),
        ("{'it's': 'don't, say \"no\"'}", """{"it's": "don't, say \\"no\\""}"""),
        *((text, None) for text in ("nan", "inf", "1j", "f(x)", "{1, 2}", "[1 2]", "[1,,2]", "x")),
        *((text, None) for text in ("", "[1] 2", "r'a'", "'a' 'b'", "'a", '"""a"', "'\\", "{:1}")),
        ("[" * 201, None),
        ("1" * 401, None),
    ],
)
def test_values_of_python(text: str, expected: str | None) -> None:
    assert whole_literal(text) == expected
    if expected is not None:
        json.loads(expected)
