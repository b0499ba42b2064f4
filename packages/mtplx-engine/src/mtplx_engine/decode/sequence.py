"""The state of one sequence on the device, and reading its prompt."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from mtplx_engine.backend import mx

from mtplx_engine.cache.rollback import cache_arrays
from mtplx_engine.caching import KVFormat
from mtplx_engine.decode.scores import Score, score
from mtplx_engine.families.head import Head
from mtplx_engine.models.loaded import LoadedModel

_SCORED_AT_ONCE = 64  # rows of logits; with 250k tokens a row is a megabyte


@dataclass(slots=True)
class PendingPairs:
    """Pairs (hidden p, token p + 1) that the head has not read yet.

    The state of a position is known before the token after it: one is added, then the other.

    Attributes:
        hidden: (1, r, H) states of the trunk; None when there is none.
        tokens: The r ids that follow these positions.
    """

    hidden: mx.array | None = None
    tokens: list[int] = field(default_factory=list)

    def add_states(self, hidden: mx.array) -> None:
        """Append (1, m, H) states of the latest positions."""
        known = [hidden] if self.hidden is None else [self.hidden, hidden]
        self.hidden = mx.concatenate(known, axis=1)

    def take(self) -> tuple[mx.array, mx.array]:
        """Remove all pairs: (1, r, H) states and (1, r) ids."""
        hidden, tokens = self.hidden, self.tokens
        assert hidden is not None
        assert hidden.shape[1] == len(tokens)
        self.hidden, self.tokens = None, []
        return hidden, mx.array([tokens])


class SequenceState:
    """Caches of one sequence.

    With n tokens read, the trunk's caches hold positions 0 .. n-1. When the sequence is to draft,
    the head's cache holds the pairs (hidden p, token p + 1) for p < n - r, and `pending` those of
    the last r positions.

    Attributes:
        caches: The trunk's, one per layer.
        head_cache: The head's; empty when this sequence does not draft.
        pending: What the head is to read next; empty when this sequence does not draft.
        length: n.
    """

    def __init__(self, model: LoadedModel, head: Head | None, kv: KVFormat | None = None) -> None:
        self.caches = model.make_cache(kv)
        self.head_cache: list[Any] = head.make_cache() if head else []
        self.pending = PendingPairs()
        self.length = 0

    def arrays(self) -> list[mx.array]:
        """Every array of the state, for `mx.eval`."""
        return cache_arrays(self.caches) + cache_arrays(self.head_cache)

    def fork(self) -> Self:
        """A sequence that goes on from here on its own."""
        return copy.deepcopy(self)


class Prefill:
    """Reads a prompt in chunks, so that progress shows and a cancel is heard.

    Args:
        model: The model.
        head: Its head, when the sequence is to draft.
        sequence: Empty.
        tokens: Ids of the prompt.
        chunk: How many to read in one step.
        top: How many likeliest tokens to list with the score of each token of the prompt; None:
            no scores.
    """

    def __init__(
        self,
        model: LoadedModel,
        head: Head | None,
        sequence: SequenceState,
        tokens: Sequence[int],
        *,
        chunk: int,
        top: int | None = None,
    ) -> None:
        self._model = model
        self._head = head
        self._sequence = sequence
        self._tokens = mx.array([tokens])
        self._chunk = chunk
        self._top = top
        self.scores: list[Score] = []  # of the tokens after those of the latest chunk

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
        if self._model.parts is None and end == self.total and end - start > 1:
            # Without a handle on the output head, logits come for all rows or none: read the last
            # token by itself, so that the head is applied to one row only.
            end -= 1
        logits = self._read(self._tokens[:, start:end], start)
        self._sequence.length = end
        if end == self.total:
            return logits
        mx.eval(self._sequence.arrays())
        mx.clear_cache()
        return None

    def _read(self, block: mx.array, start: int) -> mx.array:
        """Read a block; logits after its last token, lazily: asked of the last block only."""
        following = self._tokens[:, start + 1 : start + 1 + block.shape[1]]
        if self._model.parts is None:
            logits = self._model.read(block, self._sequence.caches).logits
            self._score(lambda rows: logits[rows], following[0])
            return logits[-1]
        unembed = self._model.parts.unembed
        hidden = self._model.parts.body(block, self._sequence.caches)
        paired = following.shape[1]
        if self._head is not None and paired:
            self._head.read(hidden[:, :paired], following, self._sequence.head_cache)
        if self._head is not None and paired < block.shape[1]:
            self._sequence.pending.add_states(hidden[:, paired:])
        self._score(lambda rows: unembed(hidden[0, rows]), following[0])
        return unembed(hidden[0, -1])

    def _score(self, logits: Any, following: mx.array) -> None:
        """Score the tokens that follow a block, some rows at a time to bound the memory."""
        self.scores = []
        if self._top is None:
            return
        for start in range(0, following.shape[0], _SCORED_AT_ONCE):
            rows = slice(start, min(start + _SCORED_AT_ONCE, following.shape[0]))
            scores = score(logits(rows), following[rows], self._top)
            mx.eval(scores.arrays())
            self.scores += scores.read(rows.stop - rows.start)
