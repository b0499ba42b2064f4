"""Frames of a stream: what is in one, and when it goes out."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtplx_engine.events import (
    CallDelta,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    Likelihood,
    ReasoningDelta,
    ScoredToken,
    Speculation,
    Started,
    TextDelta,
    Timings,
    TokensScored,
    Usage,
)
from mtplx_server.http.framing import FRAMINGS
from mtplx_server.http.merging import Burst
from mtplx_server.http.pacing import Clock, Cutter, Pace, joined
from mtplx_server.http.stream import pump
from mtplx_server.protocols.openai_chat.encode import ChatEncoder
from mtplx_server.protocols.openai_stream import Heading
from mtplx_server.protocols.report import Asked

SCORE = ScoredToken(Likelihood(1, "a", b"a", -0.5), ())
END = Finished(
    "stop", None, Usage(1, 3, 0), Speculation("plain", 0, None, 2, (), ()), Timings(0, 0, 0)
)
EVENTS = st.one_of(
    st.builds(TextDelta, st.text("ab", min_size=1)),
    st.builds(ReasoningDelta, st.text("ab", min_size=1)),
    st.builds(CallStarted, st.just(0), st.just("f")),
    st.builds(CallDelta, st.sampled_from([0, 1]), st.text("ab", min_size=1)),
    st.builds(CallEnded, st.just(0)),
    st.just(TokensScored((SCORE,))),
)
PACES = st.builds(Pace, st.integers(1, 5), st.booleans())


def texts(events: list[Event]) -> list[Event]:
    return [each for each in joined(events) if not isinstance(each, TokensScored)]


def scores(events: list[Event]) -> int:
    return sum(len(each.tokens) for each in events if isinstance(each, TokensScored))


@given(st.lists(st.lists(EVENTS, max_size=6), max_size=6), PACES)
def test_cutting_loses_nothing_and_keeps_the_order(bursts, pace):
    cutter = Cutter(pace)
    groups = [group for burst in [*bursts, [END]] for group in cutter.cut(burst)]
    before: list[Event] = [event for burst in bursts for event in burst]
    after = [event for group in groups for event in group]
    assert texts(after) == texts([*before, END])
    assert scores(after) == scores(before)


@given(st.lists(st.lists(EVENTS, max_size=6), max_size=6), PACES)
def test_scores_come_before_the_text_of_their_tokens(bursts, pace):
    cutter = Cutter(pace)
    seen = given_scores = 0
    for burst in bursts:
        given_scores += scores(burst)
        for group in cutter.cut(burst):
            kinds = [isinstance(each, TokensScored) for each in group]
            assert kinds == sorted(kinds, reverse=True)
            seen += scores(group)
    assert seen <= given_scores


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(1, 4))
def test_a_frame_has_as_many_tokens_as_asked_for(sizes, interval):
    cutter = Cutter(Pace(interval, spread=True))
    groups = [g for size in sizes for g in cutter.cut([TextDelta("a")] * size)]
    assert [len(group) for group in groups] == [1] * (sum(sizes) // interval)
    assert all(group[0] == TextDelta("a" * interval) for group in groups)


def test_without_spreading_a_round_is_a_frame():
    cutter = Cutter(Pace(1, spread=False))
    assert cutter.cut([TextDelta("a"), TextDelta("b")]) == [[TextDelta("ab")]]
    cutter = Cutter(Pace(4, spread=False))
    assert cutter.cut([TextDelta("a")] * 3) == []
    assert cutter.cut([TextDelta("b")] * 3) == [[TextDelta("aaabbb")]]


def test_pauses_divide_the_time_of_a_round(monkeypatch):
    now = 100.0
    monkeypatch.setattr("mtplx_server.http.pacing.time.monotonic", lambda: now)
    clock = Clock()
    clock.arrived()
    assert clock.pause_s(4) == 0  # nothing is known of rounds yet
    now += 0.1
    clock.arrived()
    assert clock.pause_s(4) == pytest.approx(0.02)
    now += 60  # a stall is no round
    clock.arrived()
    assert clock.pause_s(1) < 0.5


def sent_by(source: AsyncIterator[Burst], pace: Pace, after_each=None) -> list[str]:
    sent: list[str] = []

    async def send(data: bytes) -> None:
        sent.append(data.decode())
        if after_each:
            await after_each()

    asked = Asked("req", "m", None, [])
    encoder = ChatEncoder(Heading("id", 1, 1, include_usage=False, scored=False, asked=asked))
    rest = {"framing": FRAMINGS["sse"], "pace": pace, "keepalive_s": 60, "request_id": "req"}
    asyncio.run(pump([Started(1)], source, encoder.stream(), send, **rest))
    return sent


async def two_rounds() -> AsyncIterator[Burst]:
    yield 0, [TextDelta("a")]
    yield 0, [TextDelta("b"), TextDelta("c"), END]


def test_tokens_of_a_round_go_out_one_by_one():
    frames = sent_by(two_rounds(), Pace())
    assert len(frames) == 6  # role, a, b, c, finish, [DONE]
    frames = sent_by(two_rounds(), Pace(spread=False))
    assert len(frames) == 4
    assert '"content":"bc"' in frames[2]


def test_what_is_left_of_a_round_does_not_wait_for_the_clock(monkeypatch):
    """The next round is there at once, so a pause of an hour is cut short."""
    monkeypatch.setattr("mtplx_server.http.pacing.Clock.pause_s", lambda *_: 3600.0)

    async def source() -> AsyncIterator[Burst]:
        yield 0, [TextDelta("a"), TextDelta("b"), TextDelta("c")]
        yield 0, [END]

    assert len(sent_by(source(), Pace())) == 6


def test_frames_are_in_order_for_every_answer():
    async def source() -> AsyncIterator[Burst]:
        for at in range(6):
            yield 0, [TextDelta(f"{at}")]

    encoded = "".join(sent_by(source(), Pace()))
    assert [encoded.index(f'"content":"{at}"') for at in range(6)] == sorted(
        encoded.index(f'"content":"{at}"') for at in range(6)
    )
