"""Reading a prompt."""

from collections.abc import Sequence
from typing import Any

from mtplx_engine.backend import mx

from mtplx_engine.decode.scores import Score, score
from mtplx_engine.decode.sequence import SequenceState
from mtplx_engine.families.head import Head
from mtplx_engine.models.loaded import LoadedModel

_SCORED_AT_ONCE = 64  # rows of logits; with 250k tokens a row is a megabyte


class Prefill:
    """Reads a prompt in chunks, so that progress shows and a cancel is heard.

    Args:
        model: The model.
        head: Its head, when the sequence is to draft.
        sequence: Empty, or one that has read the beginning of the prompt.
        tokens: Ids of the prompt.
        chunk: How many to read in one step.
        stops: Positions, rising, at which a step ends, for what is noted there.
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
        stops: Sequence[int] = (),
        top: int | None = None,
    ) -> None:
        self._model = model
        self._head = head
        self._sequence = sequence
        self._ids = tokens
        self._tokens = mx.array([tokens])
        self._chunk = chunk
        self._stops = stops
        self._top = top
        self.scores: list[Score] = []  # of the tokens after those of the latest chunk
        if sequence.pending.hidden is not None and sequence.length < self.total:
            sequence.pending.tokens.append(tokens[sequence.length])

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
        if start == self.total:
            return self._read_already()
        end = self._end(start)
        logits, hidden = self._read(self._tokens[:, start:end], start)
        self._sequence.length = end
        if end == self.total or end in self._stops:
            self._sequence.note(hidden)
        if end == self.total:
            return logits
        mx.eval(self._sequence.arrays())
        mx.clear_cache()
        return None

    def _end(self, start: int) -> int:
        """Where the chunk that begins here ends."""
        stop = next((stop for stop in self._stops if stop > start), self.total)
        end = min(start + self._chunk, stop, self.total)
        if self._model.parts is None and end == self.total and end - start > 1:
            # Without a handle on the output head, logits come for all rows or none: read the last
            # token by itself, so that the head is applied to one row only.
            end -= 1
        return end

    def _read_already(self) -> mx.array:
        """Logits of a prompt that a restored sequence has read to its end."""
        hidden = self._sequence.checkpoints[-1].hidden
        assert self._model.parts is not None
        assert hidden is not None
        return self._model.parts.unembed(hidden[0, -1])

    def _read(self, block: mx.array, start: int) -> tuple[mx.array, mx.array | None]:
        """Read a block.

        Returns:
            (V,) logits after its last token, asked of the last block only, so lazy; and the
            (1, 1, H) state of that token, where it is had.
        """
        end = start + block.shape[1]
        following = self._tokens[0, start + 1 : end + 1]
        if self._model.parts is None:
            logits = self._model.read(block, self._sequence.caches).logits
            self._score(lambda rows: logits[rows], following)
            return logits[-1], None
        unembed = self._model.parts.unembed
        hidden = self._model.parts.body(block, self._sequence.caches)
        if self._head is not None:
            pending = self._sequence.pending
            pending.add_states(hidden)
            pending.tokens += self._ids[start + 1 : end + 1]
            if pending.tokens:
                states, tokens = pending.take()
                self._head.read(states, tokens, self._sequence.head_cache)
        self._score(lambda rows: unembed(hidden[0, rows]), following)
        return unembed(hidden[0, -1]), hidden[:, -1:]

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
