"""Every dialect: what it reads, however the text is cut; and that its grammar derives just that."""

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dialect_samples import TOOLS, Sample, called, fits, joined, merged, said
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.utils import load_tokenizer

from mtplx_engine.chat.calls import CallReader
from mtplx_engine.chat.dialects.base import Dialect
from mtplx_engine.chat.dialects.registry import DIALECTS, dialect_of
from mtplx_engine.chat.grammar import Grammars
from mtplx_engine.chat.reasoning import ReasoningMarkers, ReasoningSplitter, ReasoningStart
from mtplx_engine.chat.scanning import Parsed
from mtplx_engine.constraint import Composed
from mtplx_engine.events import (
    CallBroken,
    CallDelta,
    CallEnded,
    CallStarted,
    ReasoningDelta,
    TextDelta,
)

SAMPLES = merged("SAMPLES")
TEMPLATES = merged("TEMPLATES")
NAMED = {dialect.name: dialect for dialect in DIALECTS}
CASES = [
    pytest.param(dialect, sample, id=f"{dialect.name}: {sample.what}")
    for dialect in DIALECTS
    for sample in SAMPLES.get(dialect.name, ())
]
samples = pytest.mark.parametrize(("dialect", "sample"), CASES)
dialects = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


def read(dialect: Dialect, pieces: Sequence[str], *, limited: bool = False) -> tuple[Parsed, ...]:
    """The events of an answer that arrives in pieces, with adjacent deltas joined."""
    reader = CallReader(dialect, TOOLS)
    batches = [*(reader.feed(piece) for piece in pieces), reader.close(limited=limited)]
    for batch in batches:
        check_batch(batch)
    return joined([event for batch in batches for event in batch])


def check_batch(batch: Sequence[Parsed]) -> None:
    for at, event in enumerate(batch):
        assert not isinstance(event, TextDelta | CallDelta) or event.text
        if isinstance(event, CallStarted):
            assert isinstance(batch[at + 1], CallDelta)


def check_calls(events: Sequence[Parsed]) -> None:
    """Arguments of whole calls are objects; those of broken ones are not JSON at all."""
    for before, event in pairwise(events):
        if isinstance(event, CallEnded):
            assert isinstance(before, CallDelta)
            assert isinstance(json.loads(before.text), dict)
        elif isinstance(event, CallBroken):
            assert isinstance(before, CallDelta)
            with pytest.raises(json.JSONDecodeError):
                json.loads(before.text)


def text_of(events: Sequence[Parsed]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@dialects
def test_every_dialect_has_samples(dialect: Dialect) -> None:
    assert len(SAMPLES.get(dialect.name, ())) >= 8
    assert any(isinstance(event, CallBroken) for s in SAMPLES[dialect.name] for event in s.events)


@dialects
def test_a_template_tells_the_dialect(dialect: Dialect) -> None:
    assert dialect_of(f"{{{{ message }}}}{TEMPLATES[dialect.name]}<eos>") is dialect


def test_samples_are_of_known_dialects() -> None:
    assert NAMED.keys() == SAMPLES.keys() == TEMPLATES.keys()
    assert dialect_of("{{ message }}") is None


@samples
def test_a_sample_gives_its_events(dialect: Dialect, sample: Sample) -> None:
    events = read(dialect, [sample.text], limited=sample.limited)
    assert events == joined(sample.events)
    check_calls(events)


@samples
def test_cutting_changes_nothing(dialect: Dialect, sample: Sample) -> None:
    text, limited = sample.text, sample.limited
    expected = joined(sample.events)
    assert read(dialect, list(text), limited=limited) == expected
    for at in range(len(text)):
        assert read(dialect, [text[:at], text[at:]], limited=limited) == expected, text[:at]


@samples
def test_what_a_limit_cuts_is_broken_or_text(dialect: Dialect, sample: Sample) -> None:
    for at in range(len(sample.text)):
        check_calls(read(dialect, [sample.text[:at]], limited=True))


SIGNS = [*"{}[]:,;<=`'0(", '"', "\\", " ", "\n"]
WORDS = ["a", "é", "🏔", "now", "null", '"name": "now"', '"arguments": {}']


@samples
def test_a_cut_call_is_noticed(dialect: Dialect, sample: Sample) -> None:
    reader = CallReader(dialect, TOOLS)
    reader.feed(sample.text)
    assert not reader.cut
    reader.close(limited=sample.limited)
    assert reader.complete == sum(isinstance(event, CallEnded) for event in sample.events)
    if isinstance(last := sample.events[-1], CallBroken | CallEnded):
        assert reader.cut == isinstance(last, CallBroken)


def test_thoughts_are_taken_out_of_framed_answers() -> None:
    dialect = NAMED["harmony"]
    thought = f"<|channel|>analysis<|message|>Hm.<|end|>{dialect.between}"
    call = "<|channel|>commentary to=functions.now<|message|>{}"
    for answer, expected in [
        (f"{dialect.lead} Hi", said("Hi")),
        (call, called(0, "now", "{}")),
        (" to=functions.now<|channel|>commentary json<|message|>{}", called(0, "now", "{}")),
    ]:
        markers = ReasoningMarkers("<|channel|>analysis<|message|>", "<|end|>")
        splitter, text = ReasoningSplitter(ReasoningStart(markers, False)), thought * 2 + answer
        deltas = [delta for each in text for delta in splitter.feed(each)] + splitter.close()
        assert "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)) == "Hm.Hm."
        assert read(dialect, [d.text for d in deltas if isinstance(d, TextDelta)]) == expected


PIECES = st.sampled_from([*SIGNS, *WORDS])


@dialects
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_garbage_stays_text(dialect: Dialect, data: st.DataObject) -> None:
    marks = (*dialect.openers, *dialect.marks)
    opener = data.draw(st.sampled_from(dialect.openers))
    pieces = [opener, *data.draw(st.lists(PIECES | st.sampled_from(marks), max_size=12))]
    check_odd(dialect, "".join(pieces))


@dialects
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_damaged_calls_are_calls_or_text(dialect: Dialect, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SAMPLES[dialect.name])).text
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(begin + 3, len(text))))
    check_odd(dialect, text[:begin] + "".join(data.draw(st.lists(PIECES, max_size=2))) + text[end:])


def check_odd(dialect: Dialect, text: str) -> None:
    """Whatever it is, it is read alike in pieces, and what is no call comes out as it is."""
    events = read(dialect, [text])
    check_calls(events)
    assert read(dialect, list(text)) == events
    check_calls(read(dialect, [text], limited=True))
    if not dialect.framed and not any(isinstance(event, CallEnded) for event in events):
        assert text_of(events) == text


@dialects
@given(garbage=st.lists(PIECES, max_size=12).map("".join))
@settings(max_examples=50, deadline=None)
def test_text_behind_a_call_is_kept(dialect: Dialect, garbage: str) -> None:
    sample = next(each for each in SAMPLES[dialect.name] if len(each.events) == 3)
    events = read(dialect, [f"{sample.text}\nOk {garbage}"])
    assert events[: len(sample.events)] == joined(sample.events)
    assert text_of(events) == f"Ok {garbage}"


class Walker:
    """Random answers under a grammar, over a vocabulary that has the dialects' marks as tokens."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Any = load_tokenizer(folder)
        (self._end,) = self.tokenizer.eos_token_ids
        marks = {mark for dialect in DIALECTS for mark in (*dialect.openers, *dialect.marks)}
        marks = {mark for mark in marks if mark[0] in "<[" and mark[-1] in ">]"}
        self.tokenizer.add_special_tokens({"additional_special_tokens": sorted(marks)})
        self.ids = {mark: self.tokenizer.convert_tokens_to_ids(mark) for mark in marks}
        size = len(self.tokenizer)
        self.grammars = Grammars(self.tokenizer, vocabulary=size, end_tokens={self._end})

    def as_token(self, mark: str) -> str:
        return f"<[{self.ids[mark]}]>" if mark in self.ids else as_text(mark)

    def walk(self, lark: str, rng: random.Random) -> str:
        constraint = self.grammars.make(Composed(lark, {}))
        tokens: list[int] = []
        while True:
            choices = np.flatnonzero(constraint.allowed())
            token = int(rng.choice(choices))
            if self._end in choices and rng.random() < 0.5:
                token = self._end
            if token == self._end:
                return str(self.tokenizer.decode(tokens))
            tokens.append(token)
            assert len(tokens) < 3000
            constraint.advance(token)


def as_text(mark: str) -> str:
    return json.dumps(mark, ensure_ascii=False)


@pytest.fixture(scope="module")
def walker(qwen_folder: Path) -> Walker:
    return Walker(qwen_folder)


@dialects
@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "alone"])
@pytest.mark.parametrize("tokens", [True, False], ids=["tokens", "text"])
def test_the_grammar_derives_what_is_read(
    dialect: Dialect, walker: Walker, parallel: bool, tokens: bool
) -> None:
    mark = walker.as_token if tokens else as_text
    lark = f"start: calls\n{dialect.grammar(TOOLS, parallel, mark)}"
    rng = random.Random(1)
    names = set()
    for _ in range(30):
        text = walker.walk(lark, rng)
        assert text.startswith(dialect.openers[0])
        events = read(dialect, [text])
        assert len(events) % 3 == 0, text
        assert parallel or len(events) == 3
        for begun, delta, ended in zip(events[::3], events[1::3], events[2::3], strict=True):
            assert isinstance(begun, CallStarted)
            assert isinstance(delta, CallDelta)
            assert isinstance(ended, CallEnded), text
            assert fits(begun.name, json.loads(delta.text))
            names.add(begun.name)
    assert names == {tool.name for tool in TOOLS}


def test_white_space_in_arguments_is_bounded(walker: Walker) -> None:
    lark = f"start: calls\n{NAMED['json_object'].grammar(TOOLS, False, walker.as_token)}"
    constraint = walker.grammars.make(Composed(lark, {}))
    begin = '<tool_call>\n{"name": "now", "arguments": {'
    for token in walker.tokenizer.encode(begin, add_special_tokens=False):
        constraint.advance(token)
    (space,) = walker.tokenizer.encode(" ", add_special_tokens=False)
    count = 0
    while constraint.allowed()[space]:
        constraint.advance(space)
        count += 1
    assert 10 <= count <= 100
