"""What a request costs in memory, and refusing one that does not fit."""

from dataclasses import dataclass
from typing import Self

from mtplx_engine.caching import KVFormat
from mtplx_engine.errors import InsufficientMemory
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.runtime.memory_probe import STEP, Measured, measure

# Tokens of the answer that must fit before a request is begun. `max_tokens` is a bound, not a
# wish: where it is unset it is the rest of the context window, gigabytes that hardly any answer
# comes near, and to demand them would refuse nearly everything. About a thousand tokens is a usual
# answer; a longer one goes on with what others have freed by then. The prompt, in contrast, is
# certain to be read, so all of it counts.
_DEMANDED_ANSWER = 1024


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory that a request needs beyond what is in use.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        answer_tokens: Tokens of all answers that are demanded up front.
        positions: Bytes of the attention caches.
        constant: Bytes of recurrent states and sliding windows.
        working: Bytes for a moment, while a chunk of the prompt is read. Requests take turns, so
            all of them together need this once.
    """

    prompt_tokens: int
    answer_tokens: int
    positions: int
    constant: int
    working: int

    @property
    def kept(self) -> int:
        """Bytes that stay until the request ends."""
        return self.positions + self.constant

    @property
    def total(self) -> int:
        """Bytes altogether."""
        return self.kept + self.working


@dataclass(frozen=True, slots=True)
class SequenceCost:
    """What a sequence of one model costs, in one format of its keys and values.

    The bytes of the caches are exact while positions come in chunks, but for the head, which holds
    one pair fewer; drafting may shift where a cache grows next, and it then holds less than one
    step more. The working memory is an estimate:
    MLX's peak over short passes, taken to grow with the positions of a chunk and with the pairs of
    these and the positions that they may attend to. What does not grow, such as copies of recurrent
    states, is counted as if it did, which errs on the safe side. A round of decoding reads at most
    `MOST_DRAFTS` (`decode/planner.py`) + 1 positions and is taken to need less than reading the
    prompt. Its logits, a few rows as long as the vocabulary for each position, are not counted.

    Attributes:
        measured: Bytes per position, row and pair.
        chunk: Positions that are read at a time.
    """

    measured: Measured
    chunk: int

    @classmethod
    def measure(cls, model: LoadedModel, *, chunk: int, kv: KVFormat | None = None) -> Self:
        """Run the model over a few tokens, on the MLX thread.

        Args:
            model: With its head, which is then counted for requests without drafts too.
            chunk: Positions that the engine reads at a time.
            kv: How keys and values are quantised.
        """
        return cls(measure(model, kv), chunk)

    def kept(self, positions: int) -> int:
        """Bytes of the caches of a sequence of so many positions."""
        return self._attention(positions) + self.measured.constant

    def estimate(self, prompt_tokens: int, max_new_tokens: int, *, answers: int = 1) -> Estimate:
        """What must be free before a request is begun.

        Args:
            prompt_tokens: Tokens of the prompt, all of which count.
            max_new_tokens: Most tokens of an answer, of which a bounded part counts.
            answers: How many are wanted; each goes on with its own copy of the caches.
        """
        new = min(max_new_tokens, _DEMANDED_ANSWER)
        rows = min(prompt_tokens, self.chunk)
        return Estimate(
            prompt_tokens=prompt_tokens,
            answer_tokens=answers * new,
            positions=answers * self._attention(prompt_tokens + new),
            constant=answers * self.measured.constant,
            working=rows * (self.measured.per_row + prompt_tokens * self.measured.per_pair),
        )

    def _attention(self, positions: int) -> int:
        return -(-positions // STEP) * STEP * self.measured.per_position


def check(estimate: Estimate, available: int | None) -> None:
    """Refuse a request that does not fit.

    Args:
        estimate: What it needs.
        available: Bytes that may be taken; None refuses nothing.

    Raises:
        InsufficientMemory: It needs more.
    """
    if available is not None and estimate.total > available:
        raise InsufficientMemory(
            needed=estimate.total,
            available=available,
            prompt_tokens=estimate.prompt_tokens,
            answer_tokens=estimate.answer_tokens,
        )
