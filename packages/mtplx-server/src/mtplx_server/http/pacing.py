"""Cuts what a round made into frames, and spreads these over the time that a round takes.

A round of speculative decoding settles several tokens at once. Shown at once they make a text
that jumps; shown one by one, it flows at the same speed.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from mtplx_engine.events import CallDelta, Event, ReasoningDelta, TextDelta, TokensScored

_Delta = TextDelta | ReasoningDelta | CallDelta
_LONGEST_ROUND_S = 0.5
_SLACK = 0.8  # the last frame is out before the next round is done


@dataclass(frozen=True, slots=True)
class Pace:
    """How streamed answers are cut.

    Attributes:
        interval: Tokens a frame; fewer where something else comes between or the answer ends.
        spread: Whether the tokens of a round are spread over the time of a round.
    """

    interval: int = 1
    spread: bool = True


class Cutter:
    """Cuts the events of one answer into groups, one frame's worth each."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._held: list[Event] = []
        self._deltas = 0

    def cut(self, burst: Iterable[Event]) -> list[list[Event]]:
        """Take what a round made; return the groups that are complete."""
        groups: list[list[Event]] = []
        for event in burst:
            self._held.append(event)
            if isinstance(event, _Delta):
                self._deltas += 1
                if self._deltas % self._pace.interval or not self._pace.spread:
                    continue
            elif isinstance(event, TokensScored):
                continue
            groups.append(self._release())
        if not self._pace.spread and self._deltas >= self._pace.interval:
            groups.append(self._release())
        return groups

    def _release(self) -> list[Event]:
        group, self._held, self._deltas = joined(self._held), [], 0
        return group


def joined(events: Iterable[Event]) -> list[Event]:
    """The same events with neighbours of a kind joined, scores before all text."""
    scores: list[Event] = []
    others: list[Event] = []
    for event in events:
        last = others[-1] if others else None
        match event, last:
            case TokensScored(tokens), _:
                before = scores.pop() if scores else TokensScored(())
                assert isinstance(before, TokensScored)
                scores = [TokensScored(before.tokens + tokens)]
            case TextDelta(text), TextDelta(earlier):
                others[-1] = TextDelta(earlier + text)
            case ReasoningDelta(text), ReasoningDelta(earlier):
                others[-1] = ReasoningDelta(earlier + text)
            case CallDelta(at, text), CallDelta(index, earlier) if at == index:
                others[-1] = CallDelta(at, earlier + text)
            case _:
                others.append(event)
    return scores + others


class Clock:
    """Measures rounds, to say how long to wait between the frames of one."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._round_s = 0.0

    def arrived(self) -> None:
        """What a round made has just come."""
        now = time.monotonic()
        if self._last is not None:
            gap = min(now - self._last, _LONGEST_ROUND_S)
            self._round_s = gap if not self._round_s else (self._round_s + gap) / 2
        self._last = now

    def pause_s(self, frames: int) -> float:
        """Seconds between the frames of a round."""
        return _SLACK * self._round_s / frames
