"""What JSON schemas let through and what they do not, where the official suite does not ask."""

import json
import time
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from byte_grammars import Texts, byte_grammars

from mtplx_engine.constraint import JsonObject, JsonSchema
from mtplx_engine.errors import InvalidRequest


def test_a_large_schema_is_quick() -> None:
    names = [f"name_{i}" for i in range(10_000)]
    schema = {"properties": {name: {"type": "string"} for name in names}, "required": names}
    started = time.monotonic()
    byte_grammars()[0].make(JsonSchema({"type": "object", **schema}))
    assert time.monotonic() - started < 30


CAT = {"type": "object", "properties": {"kind": {"const": "cat"}}, "required": ["kind"]}
DOG = {"type": "object", "properties": {"kind": {"const": "dog"}}, "required": ["kind"]}
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        (True, ["[1]"], []),
        ({}, ["null"], ["nul"]),
        # One way to write a name, or a name could come twice.
        (OPEN, ['{"a":1,"b":"x"}'], [r'{"\u0061":"x"}', r'{"a":1,"\u0061":"x"}', '{"a":"x"}']),
        ({"required": ["a"], "minProperties": 2, "type": "object"}, ['{"a":1,"b":1}'], ['{"a":1}']),
        ({"minProperties": 1, "type": "object"}, ['{"b":1}'], ["{}"]),
        # Drafts 4 to 2019-09.
        ({"minimum": 3, "exclusiveMinimum": True, "type": "integer"}, ["4"], ["3"]),
        ({"exclusiveMaximum": False, "allOf": [{}], "maximum": 3}, ["3"], ["4"]),
        (
            {"items": [{"type": "null"}], "allOf": [{}], "additionalItems": False},
            ["[null]"],
            ["[null,1]"],
        ),
        ({"items": {"type": "null"}, "additionalItems": False}, ["[null,null]"], ["[1]"]),
        # Keywords that speak of each other, with one of the whole between them.
        (
            {"additionalProperties": False, "anyOf": [{}], "patternProperties": {"^a": {}}},
            ['{"a":1}'],
            ['{"b":1}'],
        ),
        # Only what ends.
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/x"}, "b": {}},
                "$defs": {"x": {"$ref": "#/$defs/x"}},
            },
            ["{}", '{"b":1}'],
            ['{"a":1}'],
        ),
        (
            {"properties": {"next": {"$ref": "#"}}, "type": "object"},
            ['{"next":{"next":{}}}'],
            ['{"next":1}'],
        ),
        ({"anyOf": [{"$ref": "#"}, {"type": "string"}]}, ['"a"'], ["1"]),
        # oneOf, where no value fits two options.
        (
            {
                "oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}],
                "$defs": {"cat": CAT, "dog": DOG},
            },
            ['{"kind":"cat"}', '{"kind":"dog","age":3}'],
            ['{"kind":"cow"}', "{}"],
        ),
        ({"oneOf": [{"const": 1}, {"const": 2}, {"type": "string"}]}, ["1", '"1"'], ["3"]),
        (
            {"oneOf": [{"type": "null"}, {"type": "object"}], "anyOf": [CAT, DOG]},
            ['{"kind":"cat"}'],
            ["null"],
        ),
        # Formats.
        ({"format": "date"}, ['"2024-02-29"', '"2000-02-29"'], ['"2023-02-29"', '"1900-02-29"']),
        ({"format": "hostname"}, ['"a.example"'], [json.dumps("a." * 127 + "a"), '"xn--x"']),
        (
            {"format": "email", "pattern": "org$"},
            ['"a@b.org"'],
            ['"a@b.com"', json.dumps("a" * 65 + "@b.org")],
        ),
        ({"type": "integer", "format": "uint8"}, ["255"], ["256", "-1"]),
        (
            {"type": "integer", "format": "int32", "maximum": 5},
            ["5", "-2147483648"],
            ["6", "-2147483649"],
        ),
        ({"maximum": 2**64, "type": "integer"}, ["9007199254740992"], ["18446744073709551617"]),
        # Values that forbid nothing, and words that say nothing.
        (
            {"uniqueItems": False, "unevaluatedProperties": True, "x-order": 1, "title": "t"},
            ["1"],
            [],
        ),
        ({"propertyNames": {"type": "string"}, "type": "object"}, ['{"a":1}'], ["1"]),
        # The order of keys.
        (
            {
                "allOf": [{"properties": {"a": {}}}],
                "properties": {"b": {}},
                "required": ["a", "b"],
                "type": "object",
            },
            ['{"a":1,"b":2}'],
            ['{"b":2,"a":1}'],
        ),
    ],
)
def test_what_is_accepted_is_enforced(schema: Any, yes: list[str], no: list[str]) -> None:
    texts = Texts(schema)
    assert [text for text in yes if not texts.accept(text)] == []
    assert [text for text in no if texts.accept(text)] == []


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^.$", ["a", "é", "\U0001f600"], ["\n", "\u2028", ""]),
        (r"^\s$", ["\ufeff", "\u00a0", "\t"], ["\u0085"]),
        (r"^\S$", ["\u0085"], ["\ufeff"]),
        (r"^[^\d\s]$", ["x", "\u0661"], ["5", "\ufeff"]),
        (r"^[\w.-]+$", ["a_.-"], ["é"]),
        ("^[a&&b]$", ["a", "&", "b"], ["c"]),
        ("^[+--~~]$", ["+", ",", "~"], ["c"]),
        ("[[:alpha:]]", [":]"], ["x"]),
        (r"^\u0041\x42\ud83d\ude00\u{43}\/\-$", ["AB\U0001f600C/-"], ["AB"]),
        ("^a{2}b{,2}$", ["aab{,2}"], ["aabb"]),
        ("^a|b$", ["ax", "xb"], ["xa"]),
        (r"^(?<year>\d{4})(?:-\d+)*?$", ["2024", "2024-1-2"], ["24"]),
        (r"^\cJ[\b]?$", ["\n", "\n\b"], ["J"]),
        (r"^\p{Lu}\P{Lu}$", ["Éé"], ["éé"]),
        ("", ["", "a"], []),
    ],
)
def test_patterns_mean_what_they_mean_in_ecmascript(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    texts = Texts({"type": "string", "pattern": pattern})
    assert [text for text in yes if not texts.accept(json.dumps(text, ensure_ascii=False))] == []
    assert [text for text in no if texts.accept(json.dumps(text, ensure_ascii=False))] == []


BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "0.5",
    "-0.5",
    "1.5",
    "-1.5",
    "2",
    "0.25",
    "0.001",
    "-2",
    "10",
    "3.0",
]


def holds(name: str, number: Decimal, bound: float) -> bool:
    limit = Decimal(str(bound))
    match name:
        case "minimum":
            return number >= limit
        case "maximum":
            return number <= limit
        case "exclusiveMinimum":
            return number > limit
    return number < limit


def test_no_number_is_out_of_its_bounds() -> None:
    made = 0
    values = (-1.5, -1, 0, 0.25, 1, 2)
    for (low, high), least, most in product((BOUNDS[:2], BOUNDS[2:], BOUNDS[1:3]), values, values):
        schema = {"type": "number", low: least, high: most}
        try:
            texts = Texts(schema)
        except InvalidRequest:
            continue
        made += 1
        for text in NUMBERS:
            valid = holds(low, Decimal(text), least) and holds(high, Decimal(text), most)
            assert valid or not texts.accept(text), (schema, text)
    assert made > 30


def test_any_object_may_hold_escapes() -> None:
    constraint = byte_grammars()[0].make(JsonObject())
    tokens = byte_grammars()[1]
    for byte in rb'{"\u001b": "\u0000"}':
        constraint.advance(tokens[byte])
