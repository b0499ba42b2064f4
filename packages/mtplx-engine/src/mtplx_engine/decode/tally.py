"""Statistics of one answer's rounds."""

from typing import Literal

from mtplx_engine.decode.planner import Plan
from mtplx_engine.decode.rules import RuleName
from mtplx_engine.events import Speculation

Mode = Literal["mtp", "copy", "plain"]


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
        match plan.lane:
            case "mtp":
                self._judge(plan.drafts, accepted)
            case "copy":
                self._copied += plan.drafts
                self._copies_accepted += accepted
            case "forced":
                self._forced += plan.drafts

    def _judge(self, drafts: int, accepted: int) -> None:
        for index in range(min(accepted + 1, drafts)):
            if index == len(self._drafted):
                self._drafted.append(0)
                self._accepted.append(0)
            self._drafted[index] += 1
            self._accepted[index] += index < accepted

    def report(self, mode: Mode, rule: RuleName, *, depth: int) -> Speculation:
        """Everything so far.

        Args:
            mode: What could draft.
            rule: What judged the drafts of `mode`; forced ones cannot fail.
            depth: Tokens that the head drafts now.
        """
        return Speculation(
            mode,
            depth,
            None if mode == "plain" else rule,
            self.rounds,
            tuple(self._drafted),
            tuple(self._accepted),
            self._copied,
            self._copies_accepted,
            self._forced,
        )
