"""The loss: cross-entropy of the head's law against the trunk's, at every trained depth.

For a trunk law p and draft logits E x over the draft vocabulary,

    -sum_v p_v log softmax(E x)_v  =  m logsumexp(E x) - x . c     m = sum_v p_v,  c = sum_v p_v E_v

so that a position's law enters through one number and one vector of the model's width, which are
computed once and stored, instead of through a row as long as the vocabulary at every step.
"""

from mtplx_engine.backend import mx

from mtplx_engine.families.head import Head
from mtplx_engine.forge.batches import Batch
from mtplx_engine.forge.softmax import log_sum_exp
from mtplx_engine.forge.unroll import unroll

# A draft at depth 2 is of use only when that at depth 1 was accepted, and so on.
_DEPTH_DISCOUNT = 0.4


def distillation_loss(head: Head, batch: Batch, depths: int) -> mx.array:
    """The mean cross-entropy per position, depths weighted 1, 0.4, 0.16 and so on; a scalar."""
    total = mx.array(0.0)
    for index, outputs in enumerate(unroll(head, batch.hidden, batch.tokens, depths)):
        laws = batch.laws_at(index + 1)
        counted = laws.pick(outputs)
        log_norm, _ = log_sum_exp(head.draft_logits(counted))
        entropy = laws.mass * log_norm - mx.sum(counted * laws.centre, axis=-1)
        total = total + _DEPTH_DISCOUNT**index * mx.mean(entropy)
    return total
