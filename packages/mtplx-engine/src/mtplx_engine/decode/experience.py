"""What rounds of one model have cost and how often its drafts were right, learned as it runs.

Shared by all answers of a model, so that a new one does not start from nothing. Times are wall
clock, of whole rounds; they depend on machine, model, context and heat, so they are measured and
never modelled, except between two widths that were.
"""

import time
from dataclasses import dataclass, field
from typing import Literal

Lane = Literal["mtp", "copy"]

_TIME_MEMORY = 0.15  # weight of a new measurement
_OUTLIER = 3.0  # a round that was so much slower than usual was disturbed
# Until it is measured, each further row is taken to cost so much of a plain step; drafting more.
_ROW_COST: dict[Lane, float] = {"mtp": 0.12, "copy": 0.07}
_RATE_MEMORY = 0.97  # an observation counts half after some twenty more


@dataclass(slots=True)
class Rate:
    """How often something succeeds, as a mean that forgets.

    Attributes:
        prior: What is believed before anything was seen.
        weight: How many observations that belief is worth.
    """

    prior: float
    weight: float = 4.0
    memory: float = _RATE_MEMORY
    _hits: float = 0.0
    _seen: float = 0.0

    @property
    def mean(self) -> float:
        """The present estimate, strictly between 0 and 1."""
        return (self._hits + self.prior * self.weight) / (self._seen + self.weight)

    def add(self, *, hit: bool) -> None:
        """Count one observation."""
        self._hits = self._hits * self.memory + hit
        self._seen = self._seen * self.memory + 1.0


class RoundCosts:
    """Seconds of a round by lane and number of drafts."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[Lane, int], float] = {}
        self._last_landing = 0.0

    def begin(self) -> float:
        """Now, for `end`."""
        return time.perf_counter()

    def end(self, began: float, lane: Lane, drafts: int) -> None:
        """Count a round that has just been waited for.

        The device works through rounds in the order they were launched. One that was launched
        while another was running began when that one landed.
        """
        now = time.perf_counter()
        self.add(now - max(began, self._last_landing), lane, drafts)
        self._last_landing = now

    def add(self, seconds: float, lane: Lane, drafts: int) -> None:
        """Count one measurement."""
        key: tuple[Lane, int] = (lane if drafts else "mtp", drafts)
        known = self._seconds.get(key)
        if known is None:
            self._seconds[key] = seconds
        else:
            sample = min(seconds, _OUTLIER * known)
            self._seconds[key] = known + _TIME_MEMORY * (sample - known)

    def seconds(self, lane: Lane, drafts: int) -> float:
        """The expected time; from the nearest measured number of drafts where it is not known."""
        if not drafts:
            lane = "mtp"
        known = self._seconds.get((lane, drafts))
        if known is not None:
            return known
        measured = [n for own, n in self._seconds if own == lane or n == 0]
        slope = _ROW_COST[lane]
        if not measured:
            return 1.0 + slope * drafts
        near = min(measured, key=lambda n: (abs(n - drafts), n))
        seconds = self._seconds[lane if near else "mtp", near]
        return seconds * (1.0 + slope * drafts) / (1.0 + slope * near)


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
        self.heads = [Rate(max(0.7 - 0.1 * i, 0.3), memory=0.995) for i in range(self.max_depth)]
