"""Nothing but rounds is timed, whatever has its turn between them.

The clock is made up: it ticks when it is asked, and what is not a round takes ages.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mtplx_engine import ChatRequest, Engine, EngineOptions, Limits, RawText, Sampling, TextDelta
from mtplx_engine.decode import experience
from mtplx_engine.decode.experience import Lane, RoundCosts
from mtplx_engine.decode.plain import PlainDecoder
from mtplx_engine.decode.prefill import Prefill
from mtplx_engine.decode.speculative import SpeculativeDecoder

AGES = 1000.0


@dataclass
class Clock:
    """A clock, and what was timed with it."""

    now: float = 0.0
    timed: list[float] = field(default_factory=list)

    def read(self) -> float:
        self.now += 1e-3
        return self.now

    def slow(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, for ages."""

        def slowed(*args: Any, **options: Any) -> Any:
            self.now += AGES
            return function(*args, **options)

        return slowed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    def add(self: RoundCosts, seconds: float, lane: Lane, drafts: int) -> None:
        clock.timed.append(seconds)

    monkeypatch.setattr(experience, "time", SimpleNamespace(perf_counter=clock.read))
    monkeypatch.setattr(RoundCosts, "add", add)
    return clock


def land(costs: RoundCosts, clock: Clock, began: float, *, seconds: float) -> None:
    with costs.turn():
        clock.now += seconds
        costs.end(began, "mtp", 1)


def test_a_round_launched_while_another_runs_begins_when_that_one_landed(clock: Clock) -> None:
    costs = RoundCosts()
    one, other = costs.begin(), costs.begin()
    land(costs, clock, one, seconds=2.0)
    land(costs, clock, other, seconds=5.0)
    assert clock.timed == [pytest.approx(2.0, abs=0.1), pytest.approx(5.0, abs=0.1)]


def test_rounds_in_flight_while_something_else_is_done_are_not_timed(clock: Clock) -> None:
    costs = RoundCosts()
    one, other = costs.begin(), costs.begin()
    with costs.turn():
        clock.now += AGES
        third = costs.begin()
    for began in (one, other):
        land(costs, clock, began, seconds=1.0)
    assert clock.timed == []
    land(costs, clock, third, seconds=1.0)
    assert clock.timed == [pytest.approx(1.0, abs=0.1)]


@pytest.fixture
def engine(clock: Clock, qwen_folder: Path) -> Iterator[Engine]:
    """Its own, because its experience is of no use afterwards."""
    options = EngineOptions(model=str(qwen_folder), mtp="on", max_active=8, prefill_chunk=8)
    with Engine.open(options) as engine:
        yield engine


def ask(tokens: int, *, depth: int, prompt: str = "abc") -> ChatRequest:
    sampling, limits = Sampling(temperature=0.0), Limits(tokens, ignore_eos=True)
    return ChatRequest(RawText(prompt), sampling, limits, depth, copy_lane=False)


@pytest.mark.parametrize(
    ("slow", "name", "other"),
    [
        (Prefill, "step", ask(1, depth=0, prompt="A long prompt. " * 20)),
        (SpeculativeDecoder, "first", ask(1, depth=1)),
        (PlainDecoder, "first", ask(1, depth=0)),
        (PlainDecoder, "step", ask(20, depth=0)),
    ],
)
def test_no_round_is_charged_for_the_work_of_others(
    engine: Engine,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    slow: type,
    name: str,
    other: ChatRequest,
) -> None:
    running = engine.submit(ask(4000, depth=2))
    while not isinstance(next(running), TextDelta):
        pass
    monkeypatch.setattr(slow, name, clock.slow(getattr(slow, name)))
    before = clock.now
    engine.submit(other).result()
    assert clock.now > before + AGES, "nothing else was done, so this proves nothing"
    rounds = len(clock.timed)
    while len(clock.timed) < rounds + 3:  # the one in flight meanwhile has landed by then
        next(running)
    running.cancel()
    assert max(clock.timed) < AGES / 2


def test_rounds_of_several_answers_at_once_are_timed(engine: Engine, clock: Clock) -> None:
    for generation in [engine.submit(ask(40, depth=depth)) for depth in (1, 2)]:
        generation.result()
    assert len(clock.timed) > 20
