"""Sequences of like length, padded to the longest, as the arrays of one step."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from mtplx_engine.backend import mx

import numpy as np
import numpy.typing as npt

from mtplx_engine.forge.laws import LawFile, Records


@dataclass(frozen=True, slots=True)
class Laws:
    """The trunk's laws that N outputs of the head are measured against.

    Attributes:
        rows: (N,) which outputs, as indices into a flattened (B, S - d).
        sources: (N,) the positions that the laws are of, as indices into a flattened (B, S).
        centre: (N, H) rows of the output head, weighted by the law over the draft vocabulary.
        mass: (N,) what the law gives to the draft vocabulary.
        top: (N,) the most probable token of the whole vocabulary.
    """

    rows: mx.array
    sources: mx.array
    centre: mx.array
    mass: mx.array
    top: mx.array

    def pick(self, outputs: mx.array) -> mx.array:
        """The outputs that count: (B, S - d, H) -> (N, H)."""
        return outputs.reshape(-1, outputs.shape[-1])[self.rows]


@dataclass(frozen=True, slots=True)
class Batch:
    """B sequences of S positions.

    Attributes:
        tokens: (B, S) ids; zero in padding, which no position before it can see.
        hidden: (B, S, H) hidden states.
        records: (B, S) what the law file says.
        counts: (B, S) where the law counts: not in prompts, not in padding.
    """

    tokens: mx.array
    hidden: mx.array
    records: Records
    counts: npt.NDArray[np.bool_]

    def laws_at(self, depth: int) -> Laws:
        """What the (B, S - depth, H) outputs are to match: output r, the law at r + depth."""
        counts = self.counts[:, depth:]
        laws = self.records[:, depth:][counts]
        places = np.arange(self.records.size).reshape(self.records.shape)
        return Laws(
            rows=mx.array(np.flatnonzero(counts)),
            sources=mx.array(places[:, depth:][counts]),
            centre=mx.array(laws["centre"].astype(np.float32)),
            mass=mx.array(laws["mass"]),
            top=mx.array(laws["top"]),
        )


def read_batch(laws: LawFile, indices: Sequence[int]) -> Batch:
    """Read sequences from the law file and pad them to the longest."""
    pieces = [laws.pieces[index] for index in indices]
    longest = max(len(piece.ids) for piece in pieces)
    records = np.zeros((len(pieces), longest), dtype=laws.record)
    tokens = np.zeros(records.shape, dtype=np.int32)
    counts = np.zeros(records.shape, dtype=np.bool_)
    for row, (index, piece) in enumerate(zip(indices, pieces, strict=True)):
        length = len(piece.ids)
        records[row, :length] = laws.read(index)
        tokens[row, :length] = piece.ids
        # The law at position i is about token i + 1, so the first that counts is one before it.
        counts[row, max(piece.start - 1, 0) : length] = True
    hidden = mx.array(records["hidden"].astype(np.float32))
    return Batch(mx.array(tokens), hidden, records, counts)


def epoch(
    laws: LawFile, indices: Sequence[int], size: int, *, seed: int, number: int
) -> list[list[int]]:
    """One pass over the sequences in batches of like length, in an order of its own.

    The order depends on the seed and the number of the epoch only, so a resumed run goes on with
    the data that the stopped one would have read next.
    """
    source = random.Random(f"{seed}/{number}")
    # Lengths that are nearly equal are ordered anew each time, so that batches mix.
    ordered = sorted(indices, key=lambda index: len(laws.pieces[index].ids) + 8 * source.random())
    batches = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    source.shuffle(batches)
    return batches
