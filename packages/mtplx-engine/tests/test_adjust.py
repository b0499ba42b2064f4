"""Penalties and bias against their definitions in plain Python."""

from collections.abc import Sequence

from mtplx_engine.backend import mx

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mtplx_engine.decode.adjust import Adjuster, Adjustments, TokenCounts

SIZE = 4


def counted(tokens: Sequence[int], window: int | None, size: int) -> list[float]:
    latest = tokens if window is None else tokens[len(tokens) - min(window, len(tokens)) :]
    return [float(sum(token == each for each in latest)) for token in range(size)]


def adjusted(
    logits: Sequence[float], asked: Adjustments, prompt: Sequence[int], answer: Sequence[int]
) -> list[float]:
    size, bias = len(logits), dict(asked.logit_bias)
    seen = counted([*prompt, *answer], asked.penalty_window, size)
    drawn = counted(answer, asked.penalty_window, size)
    row = []
    for token, logit in enumerate(logits):
        value = logit + bias.get(token, 0.0)
        if seen[token]:
            over = asked.repetition_penalty
            value = value / over if value > 0 else value * over
        value -= asked.frequency_penalty * drawn[token]
        value -= asked.presence_penalty * (drawn[token] > 0)
        row.append(value)
    return row


WIDE = 7
few = st.lists(st.integers(0, WIDE - 1), max_size=12)
windows = st.sampled_from([None, 1, 2, 5, 100])
asks = st.builds(
    Adjustments,
    logit_bias=st.dictionaries(st.integers(0, WIDE - 1), st.floats(-5, 5, width=32)).map(
        lambda bias: tuple(bias.items())
    ),
    repetition_penalty=st.sampled_from([0.5, 1.0, 1.3, 4.0]),
    presence_penalty=st.sampled_from([-1.0, 0.0, 0.7]),
    frequency_penalty=st.sampled_from([-0.5, 0.0, 0.3]),
    penalty_window=windows,
)
some_logits = st.lists(st.floats(-8, 8, width=32), min_size=WIDE, max_size=WIDE)


@settings(max_examples=150, deadline=None)
@given(few, st.lists(few, max_size=4), few, windows)
def test_counts_follow_their_definition(
    start: list[int], runs: list[list[int]], drafts: list[int], window: int | None
) -> None:
    counts, text = TokenCounts(WIDE, window, start), list(start)
    for run in runs:
        if run:
            counts.extend(mx.array(run))
        text += run
    ahead = counts.after([mx.array(draft) for draft in drafts])
    assert ahead.tolist() == counted([*text, *drafts], window, WIDE)
    assert counts.after([]).tolist() == counted(text, window, WIDE)
    afresh = TokenCounts(WIDE, window, text)
    assert counts.after([]).tolist() == afresh.after([]).tolist()


@settings(max_examples=150, deadline=None)
@given(asks, few, few, few, some_logits, st.permutations(range(WIDE)), st.integers(1, WIDE))
def test_rows_follow_their_definition(
    asked: Adjustments,
    prompt: list[int],
    answer: list[int],
    drafts: list[int],
    logits: list[float],
    order: list[int],
    width: int,
) -> None:
    adjuster = Adjuster(asked, WIDE, prompt)
    if answer:
        adjuster.extend(mx.array(answer))
    before = [mx.array(draft) for draft in drafts]
    expected = np.array(adjusted(logits, asked, prompt, [*answer, *drafts]))
    row = np.array(adjuster.row(mx.array(logits), before))
    np.testing.assert_allclose(row, expected, atol=2e-5)
    columns = mx.array(order[:width])
    part = adjuster.row(mx.array(logits)[columns], before, columns)
    np.testing.assert_array_equal(np.array(part), row[order[:width]])


@settings(max_examples=60, deadline=None)
@given(asks, few, few, st.integers(0, 12), some_logits)
def test_accepted_drafts_count_as_if_they_had_been_there(
    asked: Adjustments, prompt: list[int], text: list[int], at: int, logits: list[float]
) -> None:
    grown, afresh = Adjuster(asked, WIDE, prompt), Adjuster(asked, WIDE, prompt)
    for part in (text[:at], text[at:]):
        if part:
            grown.row(mx.array(logits), [mx.array(token) for token in part])  # drafted first
            grown.extend(mx.array(part))
    for token in text:
        afresh.extend(mx.array([token]))
    rows = [np.array(a.row(mx.array(logits), [])) for a in (grown, afresh)]
    np.testing.assert_array_equal(*rows)


def test_the_window_leaves_out_what_is_too_long_ago() -> None:
    asked = Adjustments(repetition_penalty=2.0, penalty_window=2)
    adjuster = Adjuster(asked, SIZE, [3, 0, 1])
    flat = mx.ones(SIZE)
    assert adjuster.row(flat, []).tolist() == [0.5, 0.5, 1.0, 1.0]
    assert adjuster.row(flat, [mx.array(2)]).tolist() == [1.0, 0.5, 0.5, 1.0]
    assert adjuster.row(flat, [mx.array(2), mx.array(2)]).tolist() == [1.0, 1.0, 0.5, 1.0]
    adjuster.extend(mx.array([3]))
    assert adjuster.row(flat, []).tolist() == [1.0, 0.5, 1.0, 0.5]


def test_half_precision_logits_are_adjusted_in_single() -> None:
    asked = Adjustments(frequency_penalty=0.001, logit_bias=((0, 0.001),))
    adjuster = Adjuster(asked, SIZE, [])
    row = adjuster.row(mx.full(SIZE, 100.0, dtype=mx.float16), [])
    assert row.dtype == mx.float32
    assert row.tolist()[0] > 100.0


def test_a_window_alone_asks_for_nothing() -> None:
    assert Adjustments(penalty_window=5).none
    assert not Adjustments(presence_penalty=0.1, penalty_window=5).none
