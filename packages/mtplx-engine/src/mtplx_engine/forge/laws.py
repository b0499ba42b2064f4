"""What the trunk says at every position of the text: computed once, kept on disk.

Repeating the trunk's pass at every step would cost more than training the head, and a few hundred
thousand hidden states do not fit in memory beside a large model. A position takes 4 H + 16 bytes.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mtplx_engine.backend import mx

import numpy as np
import numpy.typing as npt

from mtplx_engine.families.head import Head
from mtplx_engine.forge.softmax import log_sum_exp
from mtplx_engine.forge.text import Piece

Records = npt.NDArray[np.void]


class LawFile:
    """Records of a fixed size, one per position, sequences in the order of the text.

    A record holds, for the law p of the next token over the whole vocabulary:

        hidden    (H,) the trunk's hidden state
        centre    (H,) sum over the draft vocabulary of p_v E_v, E the rows of the output head
        token     the token that was read there, by which a changed text is noticed
        log_norm  the logarithm of p's normaliser
        mass      what p gives to the draft vocabulary
        top       the most probable token
    """

    def __init__(self, path: Path, pieces: Sequence[Piece], width: int) -> None:
        self.pieces = pieces
        self._path = path
        self.record = np.dtype(
            [
                ("hidden", "<f2", (width,)),
                ("centre", "<f2", (width,)),
                ("token", "<i4"),
                ("log_norm", "<f4"),
                ("mass", "<f4"),
                ("top", "<i4"),
            ]
        )
        lengths = [len(piece.ids) for piece in pieces]
        self._starts = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]

    def complete(self, head: Head, on_piece: Callable[[int, int], None]) -> None:
        """Add what is missing, from the first sequence on that is not the one it was computed of.

        Args:
            head: Gives the trunk and the draft vocabulary.
            on_piece: Called with positions done and positions in all.
        """
        size = self.record.itemsize
        done = self._done()
        with self._path.open("ab") as file:
            # A killed process may have left half a sequence.
            file.truncate(self._starts[done] * size)
            for index in range(done, len(self.pieces)):
                file.write(self._records(head, self.pieces[index]).tobytes())
                on_piece(self._starts[index + 1], self._starts[-1])
            file.flush()
            os.fsync(file.fileno())

    def _done(self) -> int:
        """Sequences, from the first, whose records are there and theirs."""
        there = self._path.stat().st_size // self.record.itemsize if self._path.is_file() else 0
        for index, piece in enumerate(self.pieces):
            if self._starts[index + 1] > there:
                return index
            if self.read(index)["token"].tolist() != list(piece.ids):
                return index
        return len(self.pieces)

    def read(self, index: int) -> Records:
        """(S,) records of a sequence."""
        count = len(self.pieces[index].ids)
        offset = self._starts[index] * self.record.itemsize
        return np.fromfile(self._path, dtype=self.record, count=count, offset=offset)

    def _records(self, head: Head, piece: Piece) -> Records:
        hidden = head.trunk.body(mx.array([piece.ids]), None)[0]
        logits = head.trunk.unembed(hidden).astype(mx.float32)
        log_norm, law = log_sum_exp(logits)
        drafted = law if head.vocab is None else law[:, head.vocab]
        # The map to draft logits is linear, so its transpose is its gradient, whatever the rows
        # are packed as.
        _, (centre,) = mx.vjp(
            head.draft_logits, [hidden.astype(mx.float32)], [drafted.astype(mx.float32)]
        )
        columns: dict[str, Any] = {
            "hidden": hidden.astype(mx.float16),
            "centre": centre.astype(mx.float16),
            "token": mx.array(piece.ids, dtype=mx.int32),
            "log_norm": log_norm,
            "mass": mx.sum(drafted, axis=-1),
            "top": mx.argmax(logits, axis=-1).astype(mx.int32),
        }
        mx.eval(list(columns.values()))
        records = np.zeros(len(piece.ids), dtype=self.record)
        for name, values in columns.items():
            records[name] = np.array(values)
        return records
