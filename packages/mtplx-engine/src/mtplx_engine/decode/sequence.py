"""The state of one sequence on the device, and reading its prompt."""

from collections.abc import Sequence
from typing import Any

from mtplx_engine.backend import mx

from mtplx_engine.cache.rollback import cache_arrays
from mtplx_engine.families.head import Head
from mtplx_engine.models.loaded import LoadedModel


class SequenceState:
    """Caches of one sequence.

    With n tokens read, the trunk's caches hold positions 0 .. n-1. When the sequence is to draft,
    the head's cache holds the pairs (hidden p, token p + 1) for p < n - r, and `hidden` the
    trunk's states of the last r positions, whose pairs wait until their next token is known.

    Attributes:
        caches: The trunk's, one per layer.
        head_cache: The head's; empty when this sequence does not draft.
        hidden: (1, r, H) states that have no pair yet; None when this sequence does not draft.
        length: n.
    """

    def __init__(self, model: LoadedModel, head: Head | None) -> None:
        self.caches = model.make_cache()
        self.head_cache: list[Any] = head.make_cache() if head else []
        self.hidden: mx.array | None = None
        self.length = 0

    def arrays(self) -> list[mx.array]:
        """Every array of the state, for `mx.eval`."""
        return cache_arrays(self.caches) + cache_arrays(self.head_cache)


class Prefill:
    """Reads a prompt in chunks, so that progress shows and a cancel is heard."""

    def __init__(
        self,
        model: LoadedModel,
        head: Head | None,
        sequence: SequenceState,
        tokens: Sequence[int],
        *,
        chunk: int,
    ) -> None:
        self._model = model
        self._head = head
        self._sequence = sequence
        self._tokens = mx.array([tokens])
        self._chunk = chunk

    @property
    def total(self) -> int:
        """Tokens of the prompt."""
        return int(self._tokens.shape[1])

    def step(self) -> mx.array | None:
        """Read one chunk.

        Returns:
            (V,) logits after the last token when the prompt has been read, not yet evaluated;
            None before.
        """
        start = self._sequence.length
        end = min(start + self._chunk, self.total)
        block = self._tokens[:, start:end]
        last = end == self.total
        logits = self._read(block, start, last=last)
        self._sequence.length = end
        if last:
            return logits
        mx.eval(self._sequence.arrays())
        mx.clear_cache()
        return None

    def _read(self, block: mx.array, start: int, *, last: bool) -> mx.array:
        if self._head is None:
            # Lazy: unless these logits are evaluated, the output head is never applied.
            return self._model.logits(block, self._sequence.caches)[0, -1]
        hidden = self._head.trunk.body(block, self._sequence.caches)
        size = block.shape[1]
        paired = size - 1 if last else size
        if paired:
            following = self._tokens[:, start + 1 : start + 1 + paired]
            self._head.read(hidden[:, :paired], following, self._sequence.head_cache)
        if last:
            self._sequence.hidden = hidden[:, -1:]
        return self._head.trunk.unembed(hidden[0, -1])
