"""Grammars of the dialects whose arguments are not JSON text, by random walks."""

import json
import random
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlx_lm.utils import load_tokenizer
from tagged_calls import ALL, GEMMA, TAGGED, WRITE, arguments, read, tool

from mtplx_engine.chat.dialects import glm, minimax, qwen_xml
from mtplx_engine.chat.dialects.base import Dialect
from mtplx_engine.chat.grammar import Grammars
from mtplx_engine.constraint import Composed
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.events import CallStarted
from mtplx_engine.models import embedded
from mtplx_engine.tools import Tool

unquoted = pytest.mark.parametrize("dialect", [*TAGGED, *GEMMA], ids=lambda each: each.name)
tagged = pytest.mark.parametrize("dialect", TAGGED, ids=lambda dialect: dialect.name)
every = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "name": {"type": "string", "maxLength": 4}},
    "required": ["x"],
    "additionalProperties": False,
}
KINDS: dict[str, Any] = {
    "free": {"type": "string"},
    "short": {"type": "string", "minLength": 2, "maxLength": 4},
    "found": {"type": "string", "pattern": "^[ab]{1,2}/[^/]$|z{3}", "maxLength": 6},
    "words": {"enum": ["", "a b", 'q"\\\n', "né", "\n"]},
    "one": {"const": "just this"},
    "maybe": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
    "answer": {"type": ["string", "boolean"], "maxLength": 5},
    "bounded": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 7}]},
    "size": {"anyOf": [{"enum": ["big", "small"]}, {"type": "number"}]},
    "mixed": {"enum": ["a", 1, None, {"k": "v"}, True]},
    "points": {"type": ["array", "string"], "items": {"$ref": "#/$defs/Point"}, "maxLength": 2},
    "count": {"type": "integer", "minimum": -3, "maximum": 40},
    "ratio": {"type": "number"},
    "flag": {"type": "boolean"},
    "nothing": {"type": "null"},
    "point": {"$ref": "#/$defs/Point"},
    "list": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 3},
    "joined": {"allOf": [{"$ref": "#/$defs/Short"}], "description": "A short one."},
}
FS = {"Point": POINT, "Short": {"type": "string", "maxLength": 3}}
TOOLS = (
    tool(KINDS, required=["short", "bounded", "count"], **{"$defs": FS}),
    Tool("f_all", parameters={"properties": KINDS, "required": [*KINDS], "$defs": FS}),
    Tool("g", parameters={"properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}}),
    Tool("h"),
)


def fits(value: Any, schema: Any) -> bool:
    """Whether a value keeps to a schema, of those above."""
    if "$ref" in schema:
        return fits(value, FS[schema["$ref"].split("/")[-1]])
    if "allOf" in schema:
        return all(fits(value, each) for each in schema["allOf"])
    if "anyOf" in schema:
        return any(fits(value, each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        allowed = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
        return any(type(each) is type(value) and each == value for each in allowed)
    types = schema.get("type", "object")
    if not any(is_a(value, each) for each in ([types] if isinstance(types, str) else types)):
        return False
    match value:
        case str():
            length = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 9999)
            return length and re.search(schema.get("pattern", ""), value) is not None
        case list():
            return len(value) <= schema.get("maxItems", 99) and all(
                fits(each, schema["items"]) for each in value
            )
        case dict():
            known = schema["properties"]
            return set(schema.get("required", ())) <= value.keys() <= known.keys() and all(
                fits(each, known[key]) for key, each in value.items()
            )
    return value is None or schema.get("minimum", value) <= value <= schema.get("maximum", value)


def is_a(value: Any, kind: str) -> bool:
    types = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    if kind == "number":
        return isinstance(value, int | float)
    return value is None if kind == "null" else isinstance(value, types[kind])


CLOSERS = ("\n</parameter>\n", "</parameter>\n", "</arg_value>", "<escape>", '<|"|>', *'")]}')


class Walker:
    """Random answers under grammars, with a liking for what ends a value."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        (self.end,) = tokenizer.eos_token_ids
        vocabulary = len(tokenizer)
        self.grammars = Grammars(tokenizer, vocabulary=vocabulary, end_tokens={self.end})

    def mark(self, text: str) -> str:
        return f"<[{self.ids[text]}]>" if text in self.ids else json.dumps(text)

    @property
    def ids(self) -> dict[str, int]:
        return {token.content: i for i, token in self.tokenizer.added_tokens_decoder.items()}

    def walk(self, lark: str, rng: random.Random, liking: float = 0.95, begin: str = "") -> str:
        constraint = self.grammars.make(Composed(lark, {}))
        tokens: list[int] = self.tokenizer.encode(begin, add_special_tokens=False)
        for token in tokens:
            constraint.advance(token)
        closers = [each for each in CLOSERS if json.dumps(each.strip())[1:-1] in lark]
        while True:
            allowed = constraint.allowed()
            token = int(rng.choice(np.flatnonzero(allowed)))
            ending = [each for each in self.ids.values() if allowed[each]]
            if ending and rng.random() < liking / 2:
                token = rng.choice(ending)
            elif rng.random() < liking:
                token = self.closing(tokens, allowed, closers, rng) or token
            if token == self.end:
                return str(self.tokenizer.decode(tokens))
            tokens.append(token)
            assert len(tokens) < 8000
            constraint.advance(token)

    def closing(
        self, tokens: list[int], allowed: Any, closers: Sequence[str], rng: random.Random
    ) -> int | None:
        """A token that goes on with what ends a value, where that has begun, or begins it."""
        text = self.tokenizer.decode(tokens[-20:])
        for size in range(max(map(len, closers), default=0), -1, -1):
            begun = [each for each in closers if len(each) > size and text.endswith(each[:size])]
            firsts = [
                self.tokenizer.encode(each[size:], add_special_tokens=False) for each in begun
            ]
            found = [first[0] for first in firsts if allowed[first[0]]]
            if found and (size or rng.random() < 0.3):
                return rng.choice(found)
        return None


@pytest.fixture(
    scope="module", params=["text", "tokens", pytest.param("real", marks=pytest.mark.model)]
)
def walker(request: pytest.FixtureRequest, qwen_folder: Path) -> Walker:
    if request.param == "real":
        return Walker(load_tokenizer(embedded.ensure(embedded.home(), on_progress=lambda _: None)))
    tokenizer: Any = load_tokenizer(qwen_folder)
    if request.param == "tokens":
        marks = {mark for dialect in ALL for mark in (*dialect.openers, *dialect.marks)}
        tokenizer.add_tokens(
            sorted(mark for mark in marks if mark.startswith("<") and mark[-1] == ">")
        )
    return Walker(tokenizer)


@every
@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "alone"])
def test_what_a_grammar_derives_is_read_and_keeps_to_the_schema(
    dialect: Dialect, parallel: bool, walker: Walker
) -> None:
    rng = random.Random(dialect.name)
    for tools in (TOOLS, TOOLS[1:2]):  # the second has all parameters in each call
        lark = f"start: calls\n{dialect.grammar(tools, parallel, walker.mark)}"
        for _ in range(3):
            events = read(dialect, TOOLS, walker.walk(lark, rng))
            names = [event.name for event in events if isinstance(event, CallStarted)]
            calls = arguments(events)
            assert parallel or len(calls) == 1
            for name, call in zip(names, calls, strict=True):
                (named,) = (each for each in tools if each.name == name)
                assert fits(call, named.parameters or {"properties": {}})


def derives(walker: Walker, lark: str, text: str) -> bool:
    constraint = walker.grammars.make(Composed(lark, {}))
    for token in walker.tokenizer.encode(text, add_special_tokens=False):
        if not constraint.allowed()[token]:
            return False
        constraint.advance(token)
    return bool(constraint.allowed()[walker.end])


DERIVED: list[tuple[Any, tuple[str, ...], tuple[str, ...]]] = [
    (KINDS["free"], ("", "a", "\n\n", "</param", "null", "5", "{"), ("a</parameter>b",)),
    (KINDS["short"], ("né", "abcd"), ("a", "abcde")),
    (KINDS["found"], ("ab/c", "a/b", "xzzz"), ("ab/", "xab/c", "abb/c", "aazzzzz")),
    (KINDS["words"], ("", "a b", 'q"\\\n', "né"), ("a", "n")),
    (KINDS["maybe"], ("null", "", "nul", "no", "5"), ("None", "null ", "nullx")),
    (KINDS["answer"], ("true", "false", "truer", "5"), ("True", "False ", "true ")),
    (KINDS["bounded"], ("7", "12", "abc"), ("5", "1 a", "-x")),
    (KINDS["size"], ("5", "-0.5", "big"), ("+5", ".5", "bigger")),
    (KINDS["mixed"], ("a", "1", "null", "true", '{"k": "v"}'), ("b", "2", "{}")),
    (KINDS["points"], ('[{"x": 1}, {"x": 2, "name": "a"}]', "[]", "ab"), ("[", "(", "[1]")),
    (KINDS["flag"], ("true", "false"), ("True", "")),
    (KINDS["point"], ('{"x": 1, "name": "é"}',), ('{"x":1}', "{}", '{"x": 1, "y": 2}')),
    (KINDS["joined"], ("abc",), ("abcd",)),
    ({"type": "string", "pattern": r"^(?:\||\$|[|^$])+$"}, ("|$^", "$"), ("", "a", "$a")),
    ({"type": "string", "pattern": "^a|b$"}, ("ax", "xb"), ("xa", "bx")),
    (True, ("5", ""), ()),
]


@pytest.mark.parametrize(("schema", "yes", "no"), DERIVED)
def test_values_that_a_grammar_derives(
    schema: Any, yes: Sequence[str], no: Sequence[str], walker: Walker
) -> None:
    for dialect in (qwen_xml.DIALECT, minimax.DIALECT):
        tools = [tool({"x": schema}, **{"$defs": FS}, required=["x"])]
        lark = f"start: calls\n{dialect.grammar(tools, False, walker.mark)}"
        for value in (*yes, *no):
            assert derives(walker, lark, WRITE[dialect.name](value)) == (value in yes), value


def test_line_feeds_between_tags_of_glm_are_optional(walker: Walker) -> None:
    lark = f"start: calls\n{glm.DIALECT.grammar(TOOLS[2:], True, walker.mark)}"
    one = WRITE["glm"]("5").replace("f\n", "g\n").replace("x", "a")
    for answer in (one, one.replace("\n", ""), f"{one}\n{one}", one * 2):
        assert derives(walker, lark, answer)


@every
def test_optional_parameters_may_be_left_out_but_keep_their_order(
    dialect: Dialect, walker: Walker
) -> None:
    names = ("a", "b")
    for required in ((), ("a",), ("b",)):
        tools = [tool({name: {"type": "null"} for name in names}, required=required)]
        lark = f"start: calls\n{dialect.grammar(tools, False, walker.mark)}"
        rng = random.Random(0)
        found = set()
        for _ in range(40):
            (call,) = arguments(read(dialect, tools, walker.walk(lark, rng, liking=0)))
            found.add(tuple(call))
        assert found == {
            chosen
            for size in range(3)
            for chosen in combinations(names, size)
            if set(required) <= set(chosen)
        }


OPEN: list[tuple[Any, type]] = [
    ({"type": "object"}, object),
    ({}, object),
    ({"properties": {}, "additionalProperties": True}, object),
    ({"additionalProperties": {"type": "integer"}}, int),
    ({"additionalProperties": {"type": "string", "maxLength": 3}}, str),
    (
        {"properties": {"b": {"type": "boolean"}}, "additionalProperties": {"type": "null"}},
        type(None),
    ),
    (
        {
            "required": ["z"],
            "additionalProperties": {"$ref": "#/$defs/P"},
            "$defs": FS | {"P": POINT},
        },
        dict,
    ),
]


BEGIN = {each.name: f"{each.openers[0]}call:f{{" for each in GEMMA}
BEGIN |= {"lfm2": "<|tool_call_start|>[f(", "llama_pythonic": "[f("}
BEGIN |= {name: write("!").split("!")[0].rsplit("x", 1)[0] for name, write in WRITE.items()}


@every
@pytest.mark.parametrize(("schema", "kind"), OPEN)
def test_open_arguments_have_any_names(
    dialect: Dialect, schema: Any, kind: type, walker: Walker
) -> None:
    rng, tools = random.Random(str(schema)), [Tool("f", parameters=schema)]
    lark = f"start: calls\n{dialect.grammar(tools, False, walker.mark)}"
    first = "z" if "required" in schema else "k"
    named = schema.get("properties", {})
    for _ in range(4):
        text = walker.walk(lark, rng, begin=BEGIN[dialect.name] + first)
        (call,) = arguments(read(dialect, tools, text))
        assert next(iter(call)).startswith(first)
        for name, value in call.items():
            assert fits(value, named[name]) if name in named else isinstance(value, kind)


@every
@pytest.mark.parametrize("schema", [None, {"properties": {}}, {"additionalProperties": False}])
def test_closed_arguments_are_none(dialect: Dialect, schema: Any, walker: Walker) -> None:
    tools = [Tool("f", parameters=schema)]
    lark = f"start: calls\n{dialect.grammar(tools, False, walker.mark)}"
    for seed in range(3):
        assert arguments(read(dialect, tools, walker.walk(lark, random.Random(seed)))) == [{}]


@tagged
def test_a_key_in_tags_may_have_spaces(dialect: Dialect, walker: Walker) -> None:
    named = tool({"first name": {}}, required=["first name"])
    for tools in ([named], [Tool("f", parameters={})]):
        lark = f"start: calls\n{dialect.grammar(tools, False, walker.mark)}"
        answer = WRITE[dialect.name]("Ada").replace("meter=x", "meter=first name")
        answer = answer.replace('"x"', '"first name"').replace(">x<", ">first name<")
        assert derives(walker, lark, answer)
        assert arguments(read(dialect, tools, answer)) == [{"first name": "Ada"}]


@unquoted
@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string", "not": {"const": "a"}}, "'x' .*: 'not' is not supported"),
        ({"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]}, "'allOf' is not"),
        ({"type": "string", "pattern": "a(^b)?"}, "an anchor within"),
        ({"enum": ['</parameter></arg_value><escape><|"|>']}, "none of its strings can"),
        ({"type": "string", "enum": [1]}, "allows nothing"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "allows nothing"),
        ({"allOf": [{"enum": ["a"]}, {"enum": ["b"]}]}, "allows nothing"),
        (False, "allows nothing"),
    ],
)
def test_a_string_that_cannot_be_enforced_is_named(
    dialect: Dialect, schema: Any, problem: str
) -> None:
    with pytest.raises(InvalidRequest, match=problem) as raised:
        dialect.grammar([tool({"x": schema}, required=["x"])], False, json.dumps)
    assert raised.value.param == "tools"


@every
@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (tool({}, minProperties=1), "'minProperties'"),
        (tool({}, allOf=[{"not": {"required": ["a"]}}]), "'not'"),
        (tool({}, anyOf=[{"required": ["a"]}, {"required": ["b"]}]), "alternatives"),
        (tool({"a b<\n</arg_key>": {}}), "'a b<.* cannot be written"),
        (Tool("f <\n"), "'f <.* cannot be written"),
    ],
)
def test_tools_that_cannot_be_enforced_are_named(
    dialect: Dialect, broken: Tool, problem: str
) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        dialect.grammar([broken], False, json.dumps)
