"""Grammars that are refused: what is said of them, and where."""

import pytest
from byte_grammars import byte_grammars

from mtplx_engine.chat.grammar import Grammars
from mtplx_engine.constraint import Grammar, JsonSchema, Lark, Regex
from mtplx_engine.errors import InvalidRequest


@pytest.fixture(scope="module")
def grammars() -> Grammars:
    return byte_grammars()[0]


def chain(name: str, length: int) -> str:
    links = (f'{name}{at}: "a" {name}{at + 1}\n' for at in range(length))
    return f'start: {name}0\n{"".join(links)}{name}{length}: "b"\n'


def test_long_grammars_are_fine_up_to_a_bound(grammars: Grammars) -> None:
    grammars.make(Lark(chain("r", 498)))
    grammars.make(Lark('start: "%json" A // %json\nA: /%lark/'))


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        (JsonSchema({"type": "strin"}), "JSON schema is invalid: .*strin"),
        (JsonSchema({"properties": 3}), "JSON schema is invalid: properties must be"),
        (JsonSchema({"$ref": "#/$defs/nope"}), r"JSON schema is invalid: .*/\$defs/nope"),
        (JsonSchema({"enum": []}), "JSON schema is invalid: .*empty"),
        (JsonSchema({"type": "string", "pattern": "(?=a)"}), "JSON schema is invalid: look-ar"),
        (JsonSchema({"const": object()}), "JSON schema is invalid: .*not JSON"),
        (Regex("(abc"), "regular expression is invalid: unclosed group"),
        (Regex(r"\bword"), "regular expression is invalid: .*lookarounds"),
        (Regex(r"[^\s\S]"), "grammar allows no token at all"),
        (Lark("start: foo"), 'Lark grammar is invalid: .*unknown name: "foo"'),
        (Lark('rule: "a"'), "Lark grammar is invalid: no start rule"),
        (Lark(""), "Lark grammar is invalid: Empty"),
        (Lark("start: start"), "grammar allows no token at all"),
        # A chain of rules as long as this ends the process, inside llguidance.
        (Lark(chain("r", 3000)), "has more than 500 rules and terminals"),
        (Lark(chain("T", 10_000)), "has more than 500 rules and terminals"),
        (Lark("start: %json {}"), "has %json; only %ignore and %import"),
        (Lark('start: %lark { start: "a" }'), "has %lark; only"),
    ],
)
def test_a_wrong_grammar_is_named(grammars: Grammars, grammar: Grammar, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as raised:
        grammars.make(grammar)
    assert (raised.value.param or "").startswith("grammar")
    assert "\n" not in str(raised.value)


def test_an_error_names_the_place_of_the_grammar(grammars: Grammars) -> None:
    for grammar in (Regex("(", "there"), Lark("start: x", "there"), Lark("%json", "there")):
        with pytest.raises(InvalidRequest) as raised:
            grammars.make(grammar)
        assert raised.value.param == "there"
