"""Separates what a model thinks from what it answers, in text that arrives in pieces.

Knows markers, not tokens. The same text gives the same events however it is cut: what could still
turn into a marker, or into white space at the edge of a block, is held back until that is settled.
"""

from collections.abc import Container
from dataclasses import dataclass

from mtplx_engine.events import ReasoningDelta, TextDelta


@dataclass(frozen=True, slots=True)
class ReasoningMarkers:
    """The strings around a model's thoughts, for example `<think>` and `</think>`."""

    opener: str
    closer: str

    def opened_by(self, prompt: str) -> bool:
        """Whether the rendered prompt ends inside a block, so that the answer starts in it.

        Only the very end counts: a marker quoted in an instruction opens nothing.
        """
        return prompt.rstrip().endswith(self.opener)

    def closed_by(self, prompt: str) -> bool:
        """Whether the rendered prompt ends behind a block, so that the answer has none."""
        return prompt.rstrip().endswith(self.closer)


# By what is in the chat template, or among the tokens; the first that is there counts.
_KNOWN = (
    ReasoningMarkers("<|channel|>analysis<|message|>", "<|end|>"),
    ReasoningMarkers("<|channel>thought", "<channel|>"),
    ReasoningMarkers("<|START_THINKING|>", "<|END_THINKING|>"),
    ReasoningMarkers("<seed:think>", "</seed:think>"),
    ReasoningMarkers("<longcat_think>", "</longcat_think>"),
    ReasoningMarkers("[THINK]", "[/THINK]"),
    ReasoningMarkers("<think>", "</think>"),
)


def markers_of(template: str, vocabulary: Container[str]) -> ReasoningMarkers | None:
    """The markers of the model with this chat template and these tokens; None without any."""
    for markers in _KNOWN:
        both = (markers.opener, markers.closer)
        if all(mark in template for mark in both) or all(mark in vocabulary for mark in both):
            return markers
    return None


@dataclass(frozen=True, slots=True)
class ReasoningStart:
    """How an answer begins.

    Attributes:
        markers: The model's.
        is_open: Whether the prompt has opened a block.
        is_closed: Whether the prompt has closed it, too: the model is not to think.
        once: Whether there is at most one block, at the very beginning; markers after it are text.
    """

    markers: ReasoningMarkers
    is_open: bool
    is_closed: bool = False
    once: bool = False


class ReasoningSplitter:
    """Splits one answer. White space around the blocks belongs to neither side."""

    def __init__(self, start: ReasoningStart) -> None:
        self._markers = start.markers
        self._once = start.once
        self._over = start.once and start.is_closed  # no marker counts any more
        self._held = ""
        self._trim = start.is_open  # drop white space until something visible comes
        self.reasoning = start.is_open

    def feed(self, text: str) -> list[ReasoningDelta | TextDelta]:
        """Take more text and return what of it is settled."""
        self._held += text
        settled: list[ReasoningDelta | TextDelta] = []
        while (at := self._next_marker()) >= 0:
            self._emit(self._held[:at].rstrip(), settled)
            self._held = self._held[at + len(self._marker) :]
            self.reasoning = not self.reasoning
            self._over = self._once and not self.reasoning
            self._trim = True
        keep = 0 if self._over else self._unsettled()
        cut = len(self._held) - keep
        self._emit(self._held[:cut], settled)
        self._held = self._held[cut:]
        return settled

    def _next_marker(self) -> int:
        """Where the next marker that counts stands; less than 0 where there is none."""
        at = -1 if self._over else self._held.find(self._marker)
        if self._once and not self.reasoning and self._held[: max(at, 0)].strip():
            self._over, at = True, -1  # text came first
        return at

    def close(self) -> list[ReasoningDelta | TextDelta]:
        """The text has ended; return what was held back."""
        settled: list[ReasoningDelta | TextDelta] = []
        self._emit(self._held.rstrip() if self.reasoning else self._held, settled)
        self._held = ""
        return settled

    @property
    def _marker(self) -> str:
        return self._markers.closer if self.reasoning else self._markers.opener

    def _unsettled(self) -> int:
        """Length of the tail that may be the start of a marker, with the white space before it."""
        held, marker = self._held, self._marker
        longest = min(len(held), len(marker) - 1)
        partial = next((n for n in range(longest, 0, -1) if marker.startswith(held[-n:])), 0)
        visible = held[: len(held) - partial].rstrip()
        return len(held) - len(visible)

    def _emit(self, text: str, settled: list[ReasoningDelta | TextDelta]) -> None:
        if self._trim:
            text = text.lstrip()
        if text:
            self._trim = False
            self._over = self._over or (self._once and not self.reasoning)
            settled.append(ReasoningDelta(text) if self.reasoning else TextDelta(text))
