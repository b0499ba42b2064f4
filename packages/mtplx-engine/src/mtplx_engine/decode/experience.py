"""What rounds of one model have cost and how often its drafts were right, learned as it runs.

Shared by all answers of a model, so that a new one does not start from nothing. Times are wall
clock, of whole rounds; they depend on machine, model, context and heat, so they are measured and
never modelled, except between two widths that were.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

# Where drafts come from: the head, earlier text, or a grammar that leaves no choice.
Lane = Literal["mtp", "copy", "forced"]

_TIME_MEMORY = 0.15  # weight of a new measurement
_OUTLIER = 3.0  # a round that was so much slower than usual was disturbed
# The first round of a width may include compiling its kernels.
_LEAST_ROUNDS = 2
# Until it is measured, each further row is taken to cost so much of a plain step; drafting more.
_ROW_COST: dict[Lane, float] = {"mtp": 0.12, "copy": 0.07, "forced": 0.07}
_RATE_MEMORY = 0.97  # an observation counts half after some twenty more
_BELIEF = 1.0  # how many observations a belief is worth


@dataclass(slots=True)
class Rate:
    """How often something succeeds, as a mean that forgets.

    Attributes:
        memory: What an observation still counts when the next one is made.
        hits: Observed successes, weighted.
        seen: Observations, weighted.
    """

    memory: float = _RATE_MEMORY
    hits: float = 0.0
    seen: float = 0.0

    def mean(self, believed: float) -> float:
        """The present estimate, between 0 and 1.

        Args:
            believed: What to expect before anything was seen, strictly between 0 and 1.
        """
        return (self.hits + believed * _BELIEF) / (self.seen + _BELIEF)

    def add(self, *, hit: bool) -> None:
        """Count one observation."""
        self.hits = self.hits * self.memory + hit
        self.seen = self.seen * self.memory + 1.0

    def hint(self, weight: float) -> "Rate":
        """A new rate that starts with what is known here, as so many observations at most."""
        share = min(1.0, weight / self.seen) if self.seen else 0.0
        return Rate(hits=self.hits * share, seen=self.seen * share)


class RoundCosts:
    """Seconds of a round by lane and number of drafts."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[Lane, int], float] = {}
        self._rounds: Counter[tuple[Lane, int]] = Counter()
        self._last_landing = 0.0
        self._last_disturbance = 0.0

    def begin(self) -> float:
        """Now, for `end`."""
        return time.perf_counter()

    def end(self, began: float, lane: Lane, drafts: int) -> None:
        """Count a round that has just been waited for, unless it was disturbed.

        The device works through rounds in the order they were launched. One that was launched
        while another was running began when that one landed.
        """
        now = time.perf_counter()
        if began > self._last_disturbance:
            self.add(now - max(began, self._last_landing), lane, drafts)
        self._last_landing = now

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One turn of anything that the device works for goes inside.

        A round is launched in one turn of its answer and waited for in the next. Where others have
        turns in between in which no round lands, they did something else, such as reading a
        prompt, and how long the rounds in flight took cannot be told.
        """
        began, landing = time.perf_counter(), self._last_landing
        yield
        if self._last_landing == landing:
            self._last_disturbance = began

    def add(self, seconds: float, lane: Lane, drafts: int) -> None:
        """Count one measurement."""
        key: tuple[Lane, int] = (lane if drafts else "mtp", drafts)
        known = self._seconds.get(key, seconds)
        self._rounds[key] += 1
        if self._rounds[key] <= _LEAST_ROUNDS:
            self._seconds[key] = min(known, seconds)
        else:
            sample = min(seconds, _OUTLIER * known)
            self._seconds[key] = known + _TIME_MEMORY * (sample - known)

    def measured(self, lane: Lane, drafts: int) -> bool:
        """Whether rounds of this width have been measured well enough."""
        return self._rounds[lane if drafts else "mtp", drafts] >= _LEAST_ROUNDS

    def seconds(self, lane: Lane, drafts: int) -> float:
        """The expected time; where it is not known, from the nearest numbers of drafts that are."""
        if self.measured(lane, drafts):
            return self._seconds[lane if drafts else "mtp", drafts]
        slope = _ROW_COST[lane]
        known = self._known(lane) or {0: self._plain_step()}
        below = max((n for n in known if n <= drafts), default=None)
        above = min((n for n in known if n > drafts), default=None)
        if below is not None and above is not None:
            part = (drafts - below) / (above - below)
            return known[below] + part * (known[above] - known[below])
        near = max(known) if above is None else min(known)
        return known[near] * (1.0 + slope * drafts) / (1.0 + slope * near)

    def _known(self, lane: Lane) -> dict[int, float]:
        """Measured times of a lane, by number of drafts."""
        return {
            drafts: seconds
            for (own, drafts), seconds in self._seconds.items()
            if (own == lane or not drafts) and self.measured(own, drafts)
        }

    def _plain_step(self) -> float:
        """A guess at the time without drafts from those with any; 1 as long as none is known."""
        for lane, slope in _ROW_COST.items():
            if known := self._known(lane):
                near = min(known)
                return known[near] / (1.0 + slope * near)
        return 1.0


@dataclass(slots=True)
class Experience:
    """What is known of one model. Belongs to the MLX thread.

    Attributes:
        costs: Of rounds.
        heads: Of the head's draft at each position of a round, how often it stood when the ones
            before it had.
    """

    max_depth: int
    costs: RoundCosts = field(default_factory=RoundCosts)
    heads: list[Rate] = field(init=False)

    def __post_init__(self) -> None:
        self.heads = [Rate(memory=0.995) for _ in range(self.max_depth)]
