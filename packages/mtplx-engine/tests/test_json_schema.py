"""What is accepted is enforced: the official test suite, and what it does not ask."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from byte_grammars import Texts, byte_grammars
from hypothesis import given, settings
from hypothesis import strategies as st

from mtplx_engine.chat.json_schema import checked
from mtplx_engine.chat.json_schema.keywords import REFUSED
from mtplx_engine.constraint import JsonSchema
from mtplx_engine.errors import InvalidRequest

HERE = Path(__file__).parent / "json_schema_suite"
SUITE = HERE / "draft2020-12"
GAPS: dict[str, dict[str, list[str]]] = json.loads((HERE / "gaps.json").read_text())
FILES = sorted(str(path.relative_to(SUITE).with_suffix("")) for path in SUITE.rglob("*.json"))


def spellings(value: Any) -> Iterator[str]:
    for separators in ((",", ":"), (", ", ": ")):
        for ascii_only in (False, True):
            yield json.dumps(value, separators=separators, ensure_ascii=ascii_only)


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return value.keys() | {key for inner in value.values() for key in keys(inner)}
    return {key for inner in value for key in keys(inner)} if isinstance(value, list) else set()


def refusal(schema: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as raised:
        checked(schema, "schema")
    return raised.value


@pytest.mark.parametrize("file", FILES)
def test_the_official_suite(file: str) -> None:
    missed: set[str] = set()
    for group in json.loads((SUITE / f"{file}.json").read_text(encoding="utf-8")):
        schema = group["schema"]
        try:
            checked(schema, "schema")
        except InvalidRequest as error:
            assert_names_its_place(error, schema)
            continue
        texts = Texts(schema)
        for test in group["tests"]:
            accepted = any(texts.accept(text) for text in spellings(test["data"]))
            if not test["valid"]:
                assert not accepted, (group["description"], test["description"])
            elif not accepted:
                missed.add(f"{group['description']}: {test['description']}")
    assert missed == {name for files in GAPS.values() for name in files.get(file, ())}


def assert_names_its_place(error: InvalidRequest, schema: Any) -> None:
    assert error.param is not None
    assert str(error).endswith(f"(at {error.param}).")
    last = re.sub(r"(\[\d+\])+$", "", error.param).rpartition(".")[2]
    assert last in keys(schema) or "it accepts no finite value (at schema)" in str(error)


def test_no_more_of_the_suite_is_refused_than_has_to_be() -> None:
    groups = [
        group
        for file in FILES
        for group in json.loads((SUITE / f"{file}.json").read_text(encoding="utf-8"))
        if not keys(group["schema"]) & {*REFUSED, "$id", "$anchor", "$dynamicAnchor"}
    ]
    refused = 0
    for group in groups:
        try:
            checked(group["schema"], "schema")
        except InvalidRequest:
            refused += 1
    assert (len(groups), refused) == (239, 42)


STEPS: dict[str, Callable[[Any, str], tuple[Any, str]]] = {
    "items": lambda inner, _: ({"items": inner}, ".items"),
    "prefixItems": lambda inner, _: ({"prefixItems": [True, inner]}, ".prefixItems[1]"),
    "old items": lambda inner, _: ({"items": [True, inner]}, ".items[1]"),
    "anyOf": lambda inner, _: ({"anyOf": [True, inner]}, ".anyOf[1]"),
    "allOf": lambda inner, _: ({"allOf": [inner]}, ".allOf[0]"),
    "oneOf": lambda inner, _: ({"oneOf": [False, inner]}, ".oneOf[1]"),
    "rest": lambda inner, _: ({"additionalProperties": inner}, ".additionalProperties"),
    "property": lambda inner, name: (
        {"properties": {"a": True, name: inner}},
        f".properties{written(name)}",
    ),
    "pattern": lambda inner, _: (
        {"patternProperties": {"^x": inner}},
        '.patternProperties["^x"]',
    ),
}


def written(name: str) -> str:
    return f".{name}" if re.fullmatch(r"[\w$-]+", name, re.ASCII) else f"[{json.dumps(name)}]"


@given(
    keyword=st.sampled_from(sorted(REFUSED)),
    steps=st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.text(max_size=5)), max_size=8),
)
@settings(max_examples=200, deadline=None)
def test_a_refused_keyword_is_named_with_its_path(
    keyword: str, steps: list[tuple[str, str]]
) -> None:
    schema, path = {"title": "x", keyword: "anything"}, f".{keyword}"
    for step, name in steps:
        schema, before = STEPS[step](schema, name)
        path = before + path
    error = refusal(schema)
    assert error.param == "schema" + path
    assert keyword in str(error)
    assert error.param in str(error)


def test_a_refused_keyword_behind_a_reference_is_named_where_it_stands() -> None:
    schema = {"$ref": "#/$defs/a%20b~1c", "$defs": {"a b/c": {"items": {"not": {}}}}}
    assert refusal(schema).param == 'schema.$defs["a b/c"].items.not'
    assert checked({"$defs": {"unused": {"not": {}}}}, "schema") == {}


DEEP: dict[str, Any] = {}
for _ in range(10_000):
    DEEP = {"properties": {"a": DEEP}}
CHAIN = {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(3000)}


@pytest.mark.parametrize(
    ("schema", "path", "message"),
    [
        (None, "", "must be an object or a boolean"),
        ([], "", "must be an object or a boolean"),
        (False, "", "accepts no finite value"),
        ({"allOf": [True, False]}, "", "accepts no finite value"),
        ({"$ref": "#"}, "", "accepts no finite value"),
        ({"type": "array", "minItems": 1, "items": {"$ref": "#"}}, "", "no finite value"),
        (DEEP, "", "more than 100 levels"),
        ({"$ref": "#/$defs/d0", "$defs": CHAIN | {"d3000": {}}}, "", "400 levels deep"),
        ({"const": {str(i): 0 for i in range(30_000)}}, ".const", "more than 20000"),
        ({"required": [str(i) for i in range(30_000)]}, "", "more than 20000"),
        ({"properties": {str(i): {} for i in range(9999)}}, ".properties", "more than 1000"),
        ({"x-guidance": {"lenient": True}}, ".x-guidance", "not supported"),
        ({"requried": ["a"]}, ".requried", "perhaps required"),
        ({"additionalproperties": False}, ".additionalproperties", "additionalProperties"),
        ({1: 2}, "", "key 1 is not a string"),
        ({"const": float("nan")}, ".const", "nan"),
        ({"maximum": float("inf")}, ".maximum", "inf"),
        ({"const": "\ud800"}, ".const", "surrogate"),
        ({"type": ["string", "any"]}, ".type", "'any' is not a type"),
        ({"type": []}, ".type", "accepts nothing"),
        ({"required": "a"}, ".required", "list of strings"),
        ({"properties": {"a": {"required": True}}}, ".properties.a.required", "list of strings"),
        ({"properties": []}, ".properties", "object of schemas"),
        ({"properties": {"a": 3}}, ".properties.a", "an object or a boolean"),
        ({"anyOf": {}}, ".anyOf", "must be a list"),
        ({"enum": []}, ".enum", "accepts nothing"),
        ({"minLength": -1}, ".minLength", "integer from 0"),
        ({"minLength": 1.5}, ".minLength", "integer from 0"),
        ({"minimum": "1"}, ".minimum", "must be a number"),
        ({"minimum": True}, ".minimum", "must be a number"),
        ({"enum": [1, 2**53 + 1]}, ".enum[1]", "beyond"),
        ({"minimum": 2.0**60}, ".minimum", "beyond"),
        ({"multipleOf": 0}, ".multipleOf", "greater than 0"),
        ({"multipleOf": 0.07}, ".multipleOf", "cannot be told"),
        (
            {"allOf": [{"multipleOf": 99_991}, {"multipleOf": 99_989}]},
            ".allOf[1].multipleOf",
            "too",
        ),
        ({"type": "integer", "minimum": 3, "maximum": 2}, ".minimum", "greater than"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, ".minLength", "greater than"),
        ({"type": "string", "pattern": "^a$", "minLength": 2}, ".pattern", "leave nothing"),
        ({"exclusiveMinimum": 1, "maximum": 1.5}, ".exclusiveMinimum", "less than 1"),
        (
            {"allOf": [{"exclusiveMaximum": 0}, {"minimum": -0.5}]},
            ".allOf[0].exclusiveMaximum",
            "less than 1",
        ),
        ({"const": {"a": "\x1b"}}, ".const.a", "control character 27"),
        ({"properties": {"\x00": {}}}, "", "control character 0"),
        ({"pattern": "\x01"}, ".pattern", "control character 1"),
        ({"type": "string", "pattern": r"^[\x00-\x07]$"}, ".pattern", "leave nothing"),
        ({"pattern": 3}, ".pattern", "must be a string"),
        ({"pattern": "a(?!b)"}, ".pattern", "look-around"),
        ({"pattern": r"\bword"}, ".pattern", r"\\b is not supported"),
        ({"pattern": "a^b"}, ".pattern", "at the ends"),
        ({"pattern": "(a"}, ".pattern", "unclosed"),
        ({"patternProperties": {"a": {}, "b": {}}}, ".patternProperties", "exclude each other"),
        ({"patternProperties": {r"^\d": {}, "^[0-9]": {}}}, ".patternProperties", "same"),
        ({"format": "unknown"}, ".format", "these are: date"),
        ({"type": "string", "format": "int64"}, ".format", "for this type"),
        ({"type": "integer", "format": "date"}, ".format", "type excludes"),
        ({"$ref": "#/$defs/a"}, ".$ref", "nothing at"),
        ({"$ref": "#a"}, ".$ref", "into this schema"),
        ({"$ref": "http://localhost/a"}, ".$ref", "into this schema"),
        ({"items": {"$id": "a"}}, ".items.$id", "only at the top"),
        ({"$schema": "http://localhost/a"}, ".$schema", "vocabulary"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/a", "minLength": 1},
            ".minLength",
            "beside a \\$ref",
        ),
        ({"minProperties": 2}, ".minProperties", "at most one more"),
        ({"properties": {"a": {}}, "maxProperties": 1}, ".maxProperties", "not required"),
        ({"propertyNames": {"maxLength": 3}}, ".propertyNames", "not supported"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, ".oneOf", "0 and 1 do not"),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, ".oneOf", "exclude each other"),
    ],
)
def test_what_is_not_enforced_is_refused(schema: Any, path: str, message: str) -> None:
    error = refusal(schema)
    assert error.param == f"schema{path}"
    assert re.search(message, str(error)), str(error)


def test_the_callers_name_for_the_place_begins_the_path() -> None:
    with pytest.raises(InvalidRequest) as raised:
        checked({"properties": {"city": {"contains": {}}}}, "tools[3].function.parameters")
    assert raised.value.param == "tools[3].function.parameters.properties.city.contains"


def test_in_a_grammar_the_message_has_the_path() -> None:
    with pytest.raises(InvalidRequest, match=r"\(at here\.properties\.city\.contains\)") as raised:
        byte_grammars()[0].make(JsonSchema({"properties": {"city": {"contains": {}}}}, "here"))
    assert raised.value.param == "here.properties.city.contains"
