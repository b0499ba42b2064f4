"""How many tokens a round drafts, and from where.

A plan is worth E / t: the tokens that it is expected to emit over the seconds that it takes. With
a_i the chance that draft i stands when the ones before it did, E = 1 + a_1 + a_1 a_2 + ... The
planner enumerates the few plans there are and takes the best. No drafts at all is one of them.

What a plan depends on is known before the round: past rounds and past tokens. It never depends on
the drafts themselves, so it does not bias what is emitted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from mtplx_engine.decode.copying import Copy
from mtplx_engine.decode.experience import Experience, Lane, Rate

_HYSTERESIS = 0.03  # a plan that is better by less is not worth a change
_FIRST_PROBE, _LAST_PROBE = 16, 256  # rounds between looks at a neighbouring depth
_LONG_MATCH = 8
_COPY_WIDTHS = (2, 4, 8, 16)
LONGEST_COPY = _COPY_WIDTHS[-1]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a round drafts.

    Attributes:
        lane: From where.
        drafts: How many tokens.
        copied: These, when they are copied.
        matched: How many tokens before them recurred.
    """

    lane: Lane
    drafts: int
    copied: tuple[int, ...] = ()
    matched: int = 0


class Planner:
    """Plans the rounds of one answer.

    Args:
        experience: What the model's other answers taught.
        depths: Depths to choose from; one means that it is fixed.
    """

    def __init__(self, experience: Experience, depths: range) -> None:
        self._experience = experience
        self._costs = experience.costs
        self._depths = depths
        self._heads = [Rate(rate.mean, weight=8.0) for rate in experience.heads]
        self._copies = {True: Rate(0.85, 2.0, 0.9), False: Rate(0.5, 2.0, 0.9)}
        self._depth = depths[-1] if len(depths) == 1 else self._best_depth(depths)
        self._since_probe = 0
        self._probe_after = _FIRST_PROBE
        self._since_copy = 0

    @property
    def depth(self) -> int:
        """Tokens that the head drafts in a usual round now."""
        return self._depth

    def plan(self, most: int, copy: Copy | None) -> Plan:
        """Choose the next round.

        Args:
            most: Drafts that there is room for.
            copy: What could be copied.
        """
        own = Plan("mtp", min(self._next_depth(), most))
        if copy is None or most == 0:
            return own
        copied = self._best_copy(copy, min(most, len(copy.tokens)))
        self._since_copy += 1
        pays = self._worth_copy(copied) > self._worth_head(own.drafts)
        if pays or self._since_copy > _FIRST_PROBE:
            self._since_copy = 0
            return copied
        return own

    def observe(self, plan: Plan, accepted: int) -> None:
        """Learn from a round that was carried out as planned."""
        judged = min(accepted + 1, plan.drafts)
        if plan.lane == "copy":
            rate = self._copies[plan.matched >= _LONG_MATCH]
            for index in range(judged):
                rate.add(hit=index < accepted)
            return
        for index in range(judged):
            for rates in (self._heads, self._experience.heads):
                rates[index].add(hit=index < accepted)
        if len(self._depths) > 1:
            self._reconsider()

    def _reconsider(self) -> None:
        best = self._best_depth(self._depths)
        if best == self._depth:
            return
        if self._worth_head(best) > (1.0 + _HYSTERESIS) * self._worth_head(self._depth):
            self._depth, self._probe_after = best, _FIRST_PROBE

    def _next_depth(self) -> int:
        """The usual depth, or now and then a neighbour, about which little would be known."""
        if len(self._depths) == 1:
            return self._depth
        self._since_probe += 1
        if self._since_probe < self._probe_after:
            return self._depth
        self._since_probe = 0
        self._probe_after = min(2 * self._probe_after, _LAST_PROBE)
        deeper = self._depth + 1
        return deeper if deeper in self._depths else max(self._depth - 1, 0)

    def _best_depth(self, depths: range) -> int:
        return max(depths, key=self._worth_head)

    def _worth_head(self, depth: int) -> float:
        chances: Iterator[float] = accumulate((rate.mean for rate in self._heads[:depth]), mul)
        return (1.0 + sum(chances)) / self._costs.seconds("mtp", depth)

    def _best_copy(self, copy: Copy, most: int) -> Plan:
        widths = {min(width, most) for width in _COPY_WIDTHS}
        plans = [Plan("copy", width, copy.tokens[:width], copy.matched) for width in widths]
        return max(plans, key=self._worth_copy)

    def _worth_copy(self, plan: Plan) -> float:
        a = self._copies[plan.matched >= _LONG_MATCH].mean
        tokens = (1.0 - a ** (plan.drafts + 1)) / (1.0 - a)
        return tokens / self._costs.seconds("copy", plan.drafts)
