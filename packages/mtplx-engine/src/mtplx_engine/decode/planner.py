"""How many tokens a round drafts, and from where.

A plan is worth E / t: the tokens that it is expected to emit over the seconds that it takes. With
a_i the chance that draft i stands when the ones before it did, E = 1 + a_1 + a_1 a_2 + ... The
planner enumerates the few plans there are and takes the best. No drafts at all is one of them.

What a plan depends on is known before the round: past rounds and past tokens. It never depends on
the drafts themselves, so it does not bias what is emitted.

What seems worse is tried all the same from time to time: text changes, and so does what pays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mtplx_engine.decode.copying import Copy
from mtplx_engine.decode.experience import Experience, Lane, Rate

_HYSTERESIS = 0.01  # a plan that is better by less is not worth a change
_FIRST_PROBE, _LAST_PROBE = 8, 64  # rounds from one trial of what seems worse to the next
_FIRST_CHANCE = 0.7  # what the first draft of a round is believed to have before any was seen
_COPY_CHANCE = {True: 0.85, False: 0.5}  # the same of a copied one, after a long match and a short
_LONGEST_SURVEY = 8  # rounds of an answer that may go into measuring costs
_HINT = 8.0  # observations that other answers' experience is worth
_LONG_MATCH = 8
# No round drafts more tokens, whether the head's, copied or forced by a grammar. So the widest
# verify pass has one position more; `families/gated_delta.py` and `runtime/memory_cost.py` rely on
# that.
MOST_DRAFTS = 16
_COPY_WIDTHS = (2, 4, 8, MOST_DRAFTS)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a round drafts.

    Attributes:
        lane: From where.
        drafts: How many tokens.
        given: These, where they are known beforehand: copied or forced.
        matched: How many tokens before copied ones recurred.
    """

    lane: Lane
    drafts: int
    given: tuple[int, ...] = ()
    matched: int = 0


class Probes:
    """When to try what seems worse: seldom while it stays so, at once again when it went well."""

    def __init__(self) -> None:
        self._gap = _FIRST_PROBE
        self._waited = 0

    def due(self, *, soon: bool = False) -> bool:
        """Count a round; whether it should be a trial, or should where there is much to learn."""
        self._waited += 1
        return self._waited >= (min(self._gap, _FIRST_PROBE) if soon else self._gap)

    def observe(self, *, good: bool) -> None:
        """A trial took place."""
        self._waited = 0
        self._gap = 1 if good else min(max(2 * self._gap, _FIRST_PROBE), _LAST_PROBE)


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
        self._heads = [rate.hint(_HINT) for rate in experience.heads]
        self._copies = {long: Rate(memory=0.95) for long in _COPY_CHANCE}
        self._depth = self._best_depth(depths)
        self._depth_probes, self._copy_probes = Probes(), Probes()
        self._trial: int | None = None  # a depth that is tried although it seems worse
        self._survey = _LONGEST_SURVEY

    @property
    def may_draft(self) -> bool:
        """Whether the head may draft at all."""
        return self._depths[-1] > 0

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
        if copy is None or most == 0 or self._survey:
            return own
        copied = self._best_copy(copy, min(most, len(copy.tokens)))
        pays = self._worth_copy(copied) > self._worth_head(own.drafts)
        return copied if pays or self._copy_probes.due() else own

    def observe(self, plan: Plan, accepted: int) -> None:
        """Learn from a round that was carried out as planned."""
        if plan.lane == "forced":  # it was not chosen and could not fail
            return
        judged = min(accepted + 1, plan.drafts)
        if plan.lane == "copy":
            rate = self._copies[plan.matched >= _LONG_MATCH]
            for index in range(judged):
                rate.add(hit=index < accepted)
            self._copy_probes.observe(good=accepted == plan.drafts)
            return
        for index in range(judged):
            for rates in (self._heads, self._experience.heads):
                rates[index].add(hit=index < accepted)
        if len(self._depths) > 1:
            if self._trial is not None:
                self._depth_probes.observe(good=accepted >= self._trial > self._depth)
            self._reconsider()

    def _reconsider(self) -> None:
        best = self._best_depth(self._depths)
        if self._worth_head(best) > (1.0 + _HYSTERESIS) * self._worth_head(self._depth):
            self._depth = best

    def _next_depth(self) -> int:
        """The usual depth; first those that tell most about costs, later now and then another."""
        self._trial = None
        if self._survey:
            self._survey -= 1
            for depth in (self._depths[0], self._depths[-1], self._depth):
                if not self._costs.measured("mtp", depth):
                    return depth
            self._survey = 0
        if len(self._depths) > 1:
            unknown = [d for d in self._depths if not self._costs.measured("mtp", d)]
            if self._depth_probes.due(soon=bool(unknown)):
                self._trial = self._best_depth(unknown) if unknown else self._neighbour()
        return self._depth if self._trial is None else self._trial

    def _neighbour(self) -> int:
        """A depth beside the usual one: what is known of the deeper one grows old."""
        deeper = self._depth + 1
        return deeper if deeper in self._depths else self._depth - 1

    def _best_depth(self, depths: Sequence[int]) -> int:
        return max(depths, key=self._worth_head)

    def _worth_head(self, depth: int) -> float:
        tokens = reach = 1.0
        believed = _FIRST_CHANCE
        for rate in self._heads[:depth]:
            # What was not seen yet is believed to go as the draft before it.
            believed = rate.mean(believed)
            reach *= believed
            tokens += reach
        return tokens / self._costs.seconds("mtp", depth)

    def _best_copy(self, copy: Copy, most: int) -> Plan:
        widths = {min(width, most) for width in _COPY_WIDTHS}
        plans = [Plan("copy", width, copy.tokens[:width], copy.matched) for width in widths]
        return max(plans, key=self._worth_copy)

    def _worth_copy(self, plan: Plan) -> float:
        long = plan.matched >= _LONG_MATCH
        a = self._copies[long].mean(_COPY_CHANCE[long])
        tokens = (1.0 - a ** (plan.drafts + 1)) / (1.0 - a)
        return tokens / self._costs.seconds("copy", plan.drafts)
