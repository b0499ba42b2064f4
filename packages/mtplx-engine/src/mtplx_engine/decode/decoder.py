"""What the two ways of decoding a sequence have in common."""

from typing import Protocol

from mtplx_engine.backend import mx

from mtplx_engine.events import Speculation


class Decoder(Protocol):
    """Draws the tokens of one sequence whose prompt was read.

    Attributes:
        rounds: Passes of the trunk since the prompt.
    """

    rounds: int

    def first(self, logits: mx.array, *, more: bool) -> int:
        """Draw the first token from the prompt's (V,) logits, not yet evaluated.

        Args:
            logits: The last output of the prompt.
            more: Whether another token will be asked for.

        Raises:
            NonFiniteLogits: The logits were not numbers.
        """

    def step(self, *, most: int) -> list[int]:
        """Run one round and return the tokens it emits, at least one and at most `most`.

        Raises:
            NonFiniteLogits: The logits were not numbers.
        """

    def report(self) -> Speculation:
        """Statistics of the rounds so far."""
