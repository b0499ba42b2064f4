"""The state of one sequence on the device."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from mtplx_engine.backend import mx

from mtplx_engine.cache.pieces import put_rows, put_states, take_states
from mtplx_engine.cache.rollback import cache_arrays
from mtplx_engine.caching import KVFormat
from mtplx_engine.families.head import Head
from mtplx_engine.models.loaded import LoadedModel

# With so many pending, the head reads them even though it drafts nothing, so that a draft after a
# long stretch without one does not cost a prefill.
MOST_PENDING = 32


@dataclass(slots=True)
class PendingPairs:
    """Pairs (hidden p, token p + 1) that the head has not read yet.

    The state of a position is known before the token after it: one is added, then the other.

    Attributes:
        hidden: (1, r, H) states of the trunk; None when there is none.
        tokens: The ids that follow these positions: r, or r - 1 while the last is not known.
    """

    hidden: mx.array | None = None
    tokens: list[int] = field(default_factory=list)

    def add_states(self, hidden: mx.array) -> None:
        """Append (1, m, H) states of the latest positions."""
        known = [hidden] if self.hidden is None else [self.hidden, hidden]
        self.hidden = mx.concatenate(known, axis=1)

    def take(self) -> tuple[mx.array, mx.array]:
        """Remove the n pairs that are whole: (1, n, H) states and (1, n) ids."""
        hidden, tokens = self.hidden, self.tokens
        assert hidden is not None
        whole, rows = len(tokens), hidden.shape[1]
        assert whole in {rows, rows - 1}
        self.hidden, self.tokens = hidden[:, whole:] if whole < rows else None, []
        return hidden[:, :whole], mx.array([tokens])

    def drop(self, states: int, tokens: int) -> None:
        """Forget the latest states and ids."""
        if states and self.hidden is not None:
            self.hidden = self.hidden[:, : self.hidden.shape[1] - states]
        if tokens:
            del self.tokens[-tokens:]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a sequence came to at one position, for going on from there another time.

    Attributes:
        position: Tokens that were read by then.
        states: Of layers that serve their own position only, see `cache/pieces.py`.
        hidden: (1, 1, H), the trunk's state of the last of these tokens; None where it is not had.
    """

    position: int
    states: dict[str, mx.array]
    hidden: mx.array | None

    def __deepcopy__(self, _: Any) -> Self:
        return self  # nothing here ever changes

    def arrays(self) -> list[mx.array]:
        """Every array, for `mx.eval`."""
        return [*self.states.values(), *([] if self.hidden is None else [self.hidden])]


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
        checkpoints: Places to go on from another time, in order; noted only where `keep` is.
        keep: Whether they are noted.
        head_whole: Whether the head's cache goes back to the first pair.
    """

    def __init__(self, model: LoadedModel, head: Head | None, kv: KVFormat | None = None) -> None:
        self.caches = model.make_cache(kv)
        self.head_cache: list[Any] = head.make_cache() if head else []
        self.pending = PendingPairs()
        self.length = 0
        self.checkpoints: list[Checkpoint] = []
        self.keep = False
        self.head_whole = True

    def arrays(self) -> list[mx.array]:
        """Every array of the state, for `mx.eval`."""
        noted = [array for each in self.checkpoints for array in each.arrays()]
        return cache_arrays(self.caches) + cache_arrays(self.head_cache) + noted

    def fork(self) -> Self:
        """A sequence that goes on from here on its own."""
        return copy.deepcopy(self)

    def catch_up(self, head: Head) -> mx.array:
        """Let the head read the pending pairs; return its last (1, 1, H) output."""
        hidden, following = self.pending.take()
        return head.read(hidden, following, self.head_cache)[:, -1:]

    def finish(self, head: Head | None) -> None:
        """Note the end of the answer: everything that was read is to stand."""
        last = None
        if self.head_cache and head is not None and self.pending.hidden is not None:
            rows = self.pending.hidden.shape[1]
            del self.pending.tokens[rows - 1 :]  # a last token that was not read
            if self.pending.tokens:
                self.catch_up(head)
            last = self.pending.hidden
        self.note(last)

    def note(self, hidden: mx.array | None) -> None:
        """Note the present position as a place to go on from; `hidden` is its (1, 1, H) state."""
        if self.keep:
            last = None if hidden is None else mx.contiguous(hidden)
            self.checkpoints.append(Checkpoint(self.length, take_states(self.caches), last))

    def restore(
        self,
        length: int,
        rows: Sequence[Mapping[str, mx.array]],
        head_rows: Sequence[Mapping[str, mx.array]] | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        """Become a sequence that has read so many tokens, without reading them.

        With a checkpoint the head's rows are the pairs before the checkpoint's own position, whose
        state then waits for the next token. Without one, rows of the head are as many as tokens.

        Args:
            length: Tokens.
            rows: Their keys and values in the trunk's layers, in stretches.
            head_rows: Rows of the head; None where they are not had: it then begins anew.
            checkpoint: At `length`; None when the caches hold nothing but rows.
        """
        put_rows(self.caches, rows)
        if checkpoint is not None:
            put_states(self.caches, checkpoint.states)
            self.checkpoints.append(checkpoint)
        self.length = length
        if not self.head_cache:
            return
        if head_rows:
            put_rows(self.head_cache, head_rows)
        self.head_whole = head_rows is not None
        if checkpoint is not None:
            self.pending.hidden = checkpoint.hidden
