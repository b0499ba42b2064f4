"""Changes to the logits that depend on the tokens before, penalties, and those that do not, bias.

The row for a position sees exactly the tokens that decoding one by one would have seen there: the
prompt, the answer so far, and the drafts before it in the block. Drafts are arrays that have not
been computed yet, so everything here is lazy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mtplx_engine.backend import mx


@dataclass(frozen=True, slots=True)
class Adjustments:
    """What a request asks for, with every default resolved; see `request.Sampling` for the terms.

    Attributes:
        logit_bias: Pairs of token id and what to add.
        repetition_penalty: 1 changes nothing.
        presence_penalty: 0 changes nothing.
        frequency_penalty: 0 changes nothing.
        penalty_window: Latest tokens that the penalties see; None: all.
    """

    logit_bias: tuple[tuple[int, float], ...] = ()
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int | None = None

    @property
    def none(self) -> bool:
        """Whether the logits stay as they are."""
        return self == Adjustments(penalty_window=self.penalty_window)


class TokenCounts:
    """How often each token occurs among the latest ones, on the device.

    Args:
        size: V.
        window: How many of the latest tokens count; None: all.
        tokens: What there is at the start.
    """

    def __init__(self, size: int, window: int | None, tokens: Sequence[int]) -> None:
        self._window = window
        self._size = size
        ids = mx.array(list(tokens[-window:] if window else tokens), dtype=mx.int32)
        # With a window, tokens leave it again: they are counted afresh each time.
        self._tail = ids
        self._counts = self._count(ids) if window is None else None

    def after(self, drafts: list[mx.array]) -> mx.array:
        """(V,) float32 counts once these integer scalars follow."""
        more = [draft.astype(mx.int32)[None] for draft in drafts]
        if self._counts is not None:
            return self._counts.at[mx.concatenate(more)].add(1.0) if more else self._counts
        return self._count(self._latest(mx.concatenate([self._tail, *more])))

    def extend(self, tokens: mx.array) -> None:
        """(m,) token ids follow for good."""
        ids = tokens.astype(mx.int32)
        if self._counts is not None:
            self._counts = self._counts.at[ids].add(1.0)
        else:
            self._tail = self._latest(mx.concatenate([self._tail, ids]))

    def _latest(self, ids: mx.array) -> mx.array:
        return ids if self._window is None else ids[-self._window :]

    def _count(self, ids: mx.array) -> mx.array:
        zeros = mx.zeros(self._size)
        return zeros.at[ids].add(1.0) if ids.size else zeros


class Adjuster:
    """Applies a request's adjustments along one sequence.

    Args:
        asked: The adjustments.
        size: V.
        prompt: Ids of the prompt.
    """

    def __init__(self, asked: Adjustments, size: int, prompt: Sequence[int]) -> None:
        self._asked = asked
        repeats = asked.repetition_penalty != 1.0
        counts = asked.presence_penalty != 0.0 or asked.frequency_penalty != 0.0
        self._seen = TokenCounts(size, asked.penalty_window, prompt) if repeats else None
        self._drawn = TokenCounts(size, asked.penalty_window, ()) if counts else None
        self._bias = _scatter(size, asked.logit_bias)

    def extend(self, tokens: mx.array) -> None:
        """(m,) token ids joined the answer."""
        for counts in (self._seen, self._drawn):
            if counts is not None:
                counts.extend(tokens)

    def row(
        self,
        logits: mx.array,
        drafts: list[mx.array],
        columns: mx.array | None = None,
    ) -> mx.array:
        """Adjust the logits of one position.

        Args:
            logits: (V,), or (V',) over `columns`.
            drafts: Tokens between the answer so far and this position.
            columns: (V',) ids of the tokens that the logits are of; None: all.
        """

        def here(values: mx.array) -> mx.array:
            return values if columns is None else values[columns]

        asked = self._asked
        row = logits if logits.dtype == mx.float64 else logits.astype(mx.float32)
        if self._bias is not None:
            row = row + here(self._bias)
        if self._seen is not None:
            divided = mx.where(row > 0, 1 / asked.repetition_penalty, asked.repetition_penalty)
            row = mx.where(here(self._seen.after(drafts)) > 0, row * divided, row)
        if self._drawn is not None:
            counts = here(self._drawn.after(drafts))
            row = row - asked.frequency_penalty * counts - asked.presence_penalty * (counts > 0)
        return row


def _scatter(size: int, pairs: Sequence[tuple[int, float]]) -> mx.array | None:
    if not pairs:
        return None
    ids, values = zip(*pairs, strict=True)
    return mx.zeros(size).at[mx.array(ids)].add(mx.array(values))
