"""How good a head is on text that it did not learn from."""

from collections.abc import Sequence

from mtplx_engine.backend import mx, read_float

from mtplx_engine.families.head import Head
from mtplx_engine.forge.batches import Batch, read_batch
from mtplx_engine.forge.laws import LawFile
from mtplx_engine.forge.plan import MEASURED_DEPTHS, Measured
from mtplx_engine.forge.softmax import exponential, log_sum_exp
from mtplx_engine.forge.unroll import unroll

_BATCH = 4


def measure(head: Head, laws: LawFile, indices: Sequence[int]) -> Measured:
    """Measure a head on the given sequences.

    p is the trunk's law over its whole vocabulary, q the head's over the draft vocabulary, so what
    p gives to other tokens counts as lost.
    """
    overlap, agreement = [0.0] * MEASURED_DEPTHS, [0.0] * MEASURED_DEPTHS
    positions = [0] * MEASURED_DEPTHS
    for at in range(0, len(indices), _BATCH):
        batch = read_batch(laws, indices[at : at + _BATCH])
        p = _trunk_laws(head, batch)
        unrolled = unroll(head, batch.hidden, batch.tokens, MEASURED_DEPTHS)
        for index, outputs in enumerate(unrolled):
            theirs = batch.laws_at(index + 1)
            met, hit = _compare(head, theirs.pick(outputs), p[theirs.sources], theirs.top)
            overlap[index] += read_float(mx.sum(met))
            agreement[index] += read_float(mx.sum(hit))
            positions[index] += met.size
    return Measured(_averages(overlap, positions), _averages(agreement, positions))


def _averages(sums: list[float], counts: list[int]) -> tuple[float, ...]:
    return tuple(total / max(count, 1) for total, count in zip(sums, counts, strict=True))


def _trunk_laws(head: Head, batch: Batch) -> mx.array:
    """(B S, V') what the trunk gives to each draft token at each position."""
    logits = head.draft_logits(batch.hidden)
    return exponential(logits - mx.array(batch.records["log_norm"])[..., None]).flatten(0, 1)


def _compare(
    head: Head, outputs: mx.array, p: mx.array, top: mx.array
) -> tuple[mx.array, mx.array]:
    """(N,) overlaps of both laws, and (N,) whether their most probable tokens are the same.

    Args:
        head: The head.
        outputs: (N, H) its outputs.
        p: (N, V') the trunk's laws over the draft vocabulary.
        top: (N,) the trunk's most probable tokens.
    """
    logits = head.draft_logits(outputs)
    _, q = log_sum_exp(logits)
    choice = mx.argmax(logits, axis=-1)
    if head.vocab is not None:
        choice = head.vocab[choice]
    return mx.sum(mx.minimum(p, q), axis=-1), choice == top
