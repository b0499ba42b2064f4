"""Statistics of one answer's rounds."""

from mtplx_engine.decode.planner import Plan
from mtplx_engine.decode.rules import RuleName
from mtplx_engine.events import Speculation


class Tally:
    """Counts rounds and drafts. A draft after a rejected one is not judged.

    Attributes:
        rounds: Passes of the trunk.
    """

    def __init__(self) -> None:
        self.rounds = 0
        self._drafted: list[int] = []
        self._accepted: list[int] = []
        self._copied = 0
        self._copies_accepted = 0
        self._forced = 0

    def count(self, plan: Plan, accepted: int) -> None:
        """Count a round whose first `accepted` drafts stood."""
        self.rounds += 1
        if plan.copied:
            self._copied += plan.drafts
            self._copies_accepted += accepted
            return
        for index in range(min(accepted + 1, plan.drafts)):
            if index == len(self._drafted):
                self._drafted.append(0)
                self._accepted.append(0)
            self._drafted[index] += 1
            self._accepted[index] += index < accepted

    def force(self, count: int) -> None:
        """Count a round of so many tokens that a grammar left no choice about."""
        self.rounds += 1
        self._forced += count

    def report(self, rule: RuleName, *, depth: int, head: bool) -> Speculation:
        """Everything so far."""
        return Speculation(
            "mtp" if head else "copy",
            depth,
            rule,
            self.rounds,
            tuple(self._drafted),
            tuple(self._accepted),
            self._copied,
            self._copies_accepted,
            self._forced,
        )
