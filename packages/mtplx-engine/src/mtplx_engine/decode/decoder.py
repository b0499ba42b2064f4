"""What the two ways of decoding a sequence have in common."""

from dataclasses import dataclass
from typing import Protocol

from mtplx_engine.backend import mx

from mtplx_engine.decode.scores import Score
from mtplx_engine.events import Speculation


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a step emits.

    Attributes:
        tokens: Ids, at least one.
        scores: One for each token where scores were asked for; empty otherwise.
    """

    tokens: list[int]
    scores: list[Score]


class Decoder(Protocol):
    """Draws the tokens of one sequence whose prompt was read."""

    @property
    def rounds(self) -> int:
        """Passes of the trunk since the prompt."""

    def first(self, logits: mx.array, *, more: bool) -> Drawn:
        """Draw the first token from the prompt's (V,) logits, not yet evaluated.

        Args:
            logits: The last output of the prompt.
            more: Whether another token will be asked for.

        Raises:
            NonFiniteLogits: The logits were not numbers.
        """

    def ahead(self, *, most: int) -> None:
        """Start the next round, now that there will be one; `step` waits for it.

        Args:
            most: How many tokens may still be emitted; at least one.
        """

    def step(self, *, most: int) -> Drawn:
        """Run one round and return the tokens it emits, at least one and at most `most`.

        Raises:
            NonFiniteLogits: The logits were not numbers.
        """

    def settle(self, dropped: int) -> None:
        """The answer has ended, and no step follows.

        The caches then hold what belongs to the answer and was read: all of it but for the last
        token, which may not have been.

        Args:
            dropped: How many of the tokens drawn last do not belong to it.
        """

    def report(self) -> Speculation:
        """Statistics of the rounds so far."""
