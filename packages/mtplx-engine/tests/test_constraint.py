"""Random walks through grammars: where they may go, where they end, and back."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.utils import load_tokenizer
from tokenizers import Tokenizer
from tokenizers.models import BPE, Unigram, WordLevel

from mtplx_engine.chat.grammar import Grammars, _hide_added
from mtplx_engine.constraint import (
    Constraint,
    ConstraintFactory,
    Grammar,
    JsonObject,
    JsonSchema,
    Lark,
    Regex,
)
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.models import embedded

PADDING = 13
PERSON = JsonSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "colours": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3},
            "kind": {"const": "person of some kind"},
        },
        "required": ["name", "kind"],
        "additionalProperties": False,
    }
)
WORDS = Regex(r"([a-c]{2,5}(-[0-9]{1,3}){0,2}|yes|no|maybe not)\.?")
PAIRS = Lark(
    """
    start: pair (", " pair){0,2}
    pair: KEY "=" VALUE
    KEY: /[a-z]{1,4}/
    VALUE: /[0-9]{1,3}/ | "none"
    """
)


def is_person(text: str) -> bool:
    value: Any = json.loads(text)
    optional = {"age": range(121), "colours": None}
    assert {"name", "kind"} <= value.keys() <= {"name", "kind", *optional}
    assert value.get("age", 0) in range(121)
    colours = value.get("colours", [])
    assert len(colours) <= 3
    assert set(colours) <= {"red", "green"}
    return len(value["name"]) <= 8 and value["kind"] == "person of some kind"


def is_words(text: str) -> bool:
    return re.fullmatch(WORDS.pattern, text) is not None


def is_pairs(text: str) -> bool:
    pair = r"[a-z]{1,4}=([0-9]{1,3}|none)"
    return re.fullmatch(rf"{pair}(, {pair}){{0,2}}", text) is not None


@dataclass(frozen=True)
class Subject:
    """A model's vocabulary."""

    factory: ConstraintFactory
    tokenizer: Any
    vocabulary: int
    known: int
    end: int

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids))


def subject_of(folder: Path) -> Subject:
    tokenizer = load_tokenizer(folder)
    known = len(tokenizer)
    (end,) = tokenizer.eos_token_ids
    factory = Grammars(tokenizer, vocabulary=known + PADDING, end_tokens={end})
    return Subject(factory, tokenizer, known + PADDING, known, end)


@pytest.fixture(scope="module", params=["tiny", pytest.param("real", marks=pytest.mark.model)])
def subject(request: pytest.FixtureRequest, qwen_folder: Path) -> Subject:
    if request.param == "tiny":
        return subject_of(qwen_folder)
    return subject_of(embedded.ensure(embedded.home(), on_progress=lambda _: None))


def walk(constraint: Constraint, rng: random.Random, most: int) -> list[int]:
    """Advance by tokens drawn uniformly from those allowed, over the end if need be."""
    tokens: list[int] = []
    for _ in range(most):
        choices = np.flatnonzero(constraint.allowed())
        tokens.append(int(rng.choice(choices)))
        constraint.advance(tokens[-1])
    return tokens


def answer(constraint: Constraint, rng: random.Random, end: int) -> list[int]:
    """A walk up to the end token, which is left out."""
    tokens: list[int] = []
    while (token := walk(constraint, rng, 1)[0]) != end:
        tokens.append(token)
        assert len(tokens) < 2000
    return tokens


grammars = pytest.mark.parametrize(
    ("grammar", "accepts"),
    [(PERSON, is_person), (WORDS, is_words), (PAIRS, is_pairs)],
    ids=["json", "regex", "lark"],
)
seeds = st.integers(0, 2**32)
few = settings(max_examples=25, deadline=None)


@grammars
@given(seed=seeds)
@few
def test_every_walk_ends_in_a_text_of_the_grammar(
    subject: Subject, grammar: Grammar, accepts: Callable[[str], bool], seed: int
) -> None:
    constraint = subject.factory.make(grammar)
    assert accepts(subject.text(answer(constraint, random.Random(seed), subject.end)))
    assert np.flatnonzero(constraint.allowed()).tolist() == [subject.end]


@grammars
@given(seed=seeds)
@few
def test_an_end_is_allowed_exactly_where_the_text_is_whole(
    subject: Subject, grammar: Grammar, accepts: Callable[[str], bool], seed: int
) -> None:
    tokens = answer(subject.factory.make(grammar), random.Random(seed), subject.end)
    constraint = subject.factory.make(grammar)
    for count, token in enumerate(tokens):
        try:
            whole = accepts(subject.text(tokens[:count]))
        except ValueError:  # not yet JSON
            whole = False
        assert constraint.allowed()[subject.end] == whole
        constraint.advance(token)
    assert constraint.allowed()[subject.end]


@grammars
@given(seed=seeds)
@few
def test_rolling_back_equals_never_having_advanced(
    subject: Subject, grammar: Grammar, accepts: Callable[[str], bool], seed: int
) -> None:
    rng = random.Random(seed)
    constraint = subject.factory.make(grammar)
    kept: list[int] = []
    for _ in range(6):
        kept += walk(constraint, rng, rng.randrange(12))
        count = rng.randint(0, len(kept))
        constraint.roll_back(count)
        kept = kept[: len(kept) - count]
        fresh = subject.factory.make(grammar)
        for token in kept:
            fresh.advance(token)
        assert np.array_equal(constraint.allowed(), fresh.allowed())
        assert constraint.forced(9) == fresh.forced(9)


@grammars
@given(seed=seeds, most=st.integers(0, 12))
@few
def test_forced_tokens_are_the_single_choices(
    subject: Subject, grammar: Grammar, accepts: Callable[[str], bool], seed: int, most: int
) -> None:
    rng = random.Random(seed)
    constraint = subject.factory.make(grammar)
    walk(constraint, rng, rng.randrange(30))
    before = constraint.allowed()
    forced = constraint.forced(most)
    assert np.array_equal(constraint.allowed(), before)
    for token in forced:
        assert np.flatnonzero(constraint.allowed()).tolist() == [token]
        constraint.advance(token)
    ended = not forced or forced[-1] == subject.end
    assert len(forced) == most or ended or np.count_nonzero(constraint.allowed()) > 1


def test_a_constant_is_forced_as_the_tokenizer_writes_it(subject: Subject) -> None:
    constraint = subject.factory.make(Regex("a long and settled text"))
    ids = subject.ids("a long and settled text")
    assert constraint.forced(100) == [*ids, subject.end]
    assert constraint.forced(3) == ids[:3]


def test_a_finished_answer_allows_and_forces_nothing_more(subject: Subject) -> None:
    constraint = subject.factory.make(Regex("a*"))
    for _ in range(3):
        assert constraint.allowed()[subject.end]
        constraint.advance(subject.end)
        assert np.flatnonzero(constraint.allowed()).tolist() == [subject.end]
        assert constraint.forced(5) == []
    with pytest.raises(ValueError, match="not allowed"):
        constraint.advance(subject.ids("a")[0])
    constraint.roll_back(3)
    constraint.advance(subject.ids("a")[0])


def test_only_text_is_allowed_inside_a_text(subject: Subject) -> None:
    allowed = subject.factory.make(Regex("(.|\n){5,}")).allowed()
    assert allowed.shape == (subject.vocabulary,)
    assert not allowed[subject.known :].any()
    assert not allowed[subject.tokenizer.all_special_ids].any()
    assert np.count_nonzero(allowed) > subject.known // 2


def test_a_refused_token_leaves_the_state_as_it_was(subject: Subject) -> None:
    constraint = subject.factory.make(Regex("[ab]{3}"))
    constraint.advance(subject.ids("a")[0])
    before = constraint.allowed()
    others = [*subject.ids("c"), *subject.tokenizer.all_special_ids, subject.known, -1, 10**9]
    for token in [*others, subject.end]:
        with pytest.raises(ValueError, match="not allowed"):
            constraint.advance(token)
    for count in (2, -1):
        with pytest.raises(ValueError, match="undone"):
            constraint.roll_back(count)
    assert np.array_equal(constraint.allowed(), before)
    with pytest.raises(ValueError, match="read-only"):
        before[0] = True


def test_an_end_token_is_never_part_of_a_text(subject: Subject) -> None:
    constraint = subject.factory.make(Lark('start: "a" (<|im_end|> | "c") "b"'))
    constraint.advance(subject.ids("a")[0])
    assert constraint.allowed()[subject.ids("c")].all()
    assert not constraint.allowed()[subject.end]
    with pytest.raises(ValueError, match="not allowed"):
        constraint.advance(subject.end)


TAGS = ("<|endoftext|>", "<|im_end|>", "<|im_start|>", "<think>", "a<think>b</think>")


@pytest.mark.parametrize("text", TAGS)
def test_the_text_of_a_special_token_is_spelled(subject: Subject, text: str) -> None:
    for grammar in (
        JsonSchema({"const": text}),
        JsonSchema({"enum": [f"{text}a", f"{text}b"]}),
        JsonSchema({"const": {text: 1}}),
        Regex(re.escape(text)),
        Lark(f'start: "{text}" // {text}'),
    ):
        constraint = subject.factory.make(grammar)
        drawn: list[int] = []
        while not constraint.allowed()[subject.end] and len(drawn) < 200:
            drawn.append(int(np.argmax(constraint.allowed())))
            constraint.advance(drawn[-1])
        assert not set(drawn) & set(subject.tokenizer.all_special_ids)
        assert text in subject.tokenizer.decode(drawn)


def test_a_tag_in_a_lark_grammar_is_its_token(subject: Subject) -> None:
    start = subject.tokenizer.convert_tokens_to_ids("<|im_start|>")
    constraint = subject.factory.make(Lark('start: "a" <|im_start|> "b"'))
    for token in (*subject.ids("a"), start, *subject.ids("b")):
        assert np.flatnonzero(constraint.allowed()).tolist() == [token]
        constraint.advance(token)
    with pytest.raises(InvalidRequest, match=r"unknown special token: .<nope>"):
        subject.factory.make(Lark("start: <nope>"))


def test_hidden_tags_keep_their_ids_in_tokenizers_of_every_kind() -> None:
    words = {"<unk>": 0, "<s>": 1, "a": 2, "b": 3}
    for model in (
        BPE(words, [], unk_token="<unk>"),
        WordLevel(words, unk_token="<unk>"),
        Unigram([(word, -1.0) for word in words], unk_id=0),
    ):
        plain = Tokenizer(model)
        plain.add_special_tokens(["<s>", "<unk>"])
        plain.add_tokens(["<think>"])
        hidden = Tokenizer.from_str(_hide_added(plain.to_str()))
        for text, token in plain.get_vocab().items():
            name = hidden.id_to_token(token)
            assert name.replace("\U0010ffff", "") == text
            assert (name == text) == (text in "ab")
        assert hidden.encode("z").ids == plain.encode("z").ids


def test_half_a_surrogate_pair_is_refused(subject: Subject) -> None:
    for grammar in (Regex("\ud800"), Lark('start: "\ud800"'), JsonSchema({"const": "\ud800"})):
        with pytest.raises(InvalidRequest):
            subject.factory.make(grammar)


def test_any_json_object(subject: Subject) -> None:
    for text in ['{"a": [1, 2.5e3, null], "b": {"c": "\\n \u00e9"}}', '{\n  "x": true\n}', "{}"]:
        constraint = subject.factory.make(JsonObject())
        for token in [*subject.ids(text), subject.end]:
            constraint.advance(token)
    constraint = subject.factory.make(JsonObject())
    with pytest.raises(ValueError, match="not allowed"):
        constraint.advance(subject.ids("[")[0])


def test_white_space_comes_to_an_end(subject: Subject) -> None:
    constraint = subject.factory.make(JsonObject())
    space = subject.ids("\n")[0]
    constraint.advance(subject.ids("{")[0])
    count = 0
    while constraint.allowed()[space]:
        constraint.advance(space)
        count += 1
    assert 4 < count < 100


def test_a_long_walk(subject: Subject) -> None:
    constraint = subject.factory.make(Regex(r"[ -~\n]{1000,}"))
    assert len(walk(constraint, random.Random(0), 50)) == 50
    constraint.roll_back(50)
    assert not constraint.allowed()[subject.end]


def test_a_copy_goes_its_own_way(subject: Subject) -> None:
    one = subject.factory.make(Lark('start: "a" ("b" | "c") "d"'))
    one.advance(int(np.flatnonzero(one.allowed())[0]))
    other = one.copy()
    first, second = np.flatnonzero(other.allowed())[:2]
    one.advance(int(first))
    assert other.allowed()[second]
    other.advance(int(second))
    for each in (one, other):
        each.roll_back(2)
    assert np.array_equal(one.allowed(), other.allowed())


def test_a_place_with_no_way_on_is_named(subject: Subject) -> None:
    constraint = subject.factory.make(Lark('start: "a" | "b" NEVER\nNEVER: /c+/ & /d+/'))
    constraint.advance(subject.ids("b")[0])
    with pytest.raises(InvalidRequest, match="no token after 1 tokens"):
        constraint.allowed()


def test_a_tokenizer_that_cannot_be_read_is_refused(subject: Subject) -> None:
    with pytest.raises(InvalidRequest, match="tokenizer cannot follow a grammar"):
        Grammars(object(), vocabulary=10, end_tokens={1})
    with pytest.raises(InvalidRequest, match="no end token"):
        Grammars(subject.tokenizer, vocabulary=10, end_tokens={10})


def test_several_end_tokens_and_a_vocabulary_smaller_than_the_tokenizer(qwen_folder: Path) -> None:
    tokenizer = load_tokenizer(qwen_folder)
    constraint = Grammars(tokenizer, vocabulary=258, end_tokens={256, 257}).make(Regex("a?"))
    assert np.flatnonzero(constraint.allowed()).tolist() == [ord("a"), 256, 257]
    constraint.advance(ord("a"))
    assert constraint.forced(4) == []
    constraint.advance(256)
    assert np.flatnonzero(constraint.allowed()).tolist() == [256, 257]
