"""How drafts are judged, as pure functions. The randomness is an argument, never drawn here.

Vocabulary, for one round with k drafts:

    draft       d_1 .. d_k, guessed by the head, d_i drawn from q_i
    target law  p_1 .. p_{k+1}, the trunk's law at each position given the drafts before it
    accepted    the first j drafts
    emitted     the accepted drafts and one more token from the trunk: j + 1 tokens

Two rules, both exact: the emitted tokens have the law of plain decoding.

*Matching* (`count_matches`). Draw t_i from p_i for every row as plain decoding would, accept while
d_i = t_i, emit t_1 .. t_{j+1}. Every emitted token is the target's own draw, so this is exact for
any draft whatever. Greedy decoding matches argmaxes. Coupled decoding lets draft and target use
the same Gumbel noise at a position: the draws agree with probability at least (1 - TV) / (1 + TV),
and the emitted tokens do not depend on the depth.

*Rejection* (`count_accepted`, `correction_law`). Accept d_i with probability
min(1, p_i(d_i) / q_i(d_i)); at the first rejection emit a token from (p_i - q_i)_+ normalised; if
all stand, emit one from p_{k+1}. Leviathan et al., arXiv 2211.17192, algorithm 1 and appendix A.1;
Chen et al., arXiv 2302.01318. It accepts 1 - TV(p_i, q_i), the most that any rule can. q_i must be
the law that d_i was really drawn from.
"""

from mtplx_engine.backend import mx


def count_matches(drafts: mx.array, targets: mx.array) -> mx.array:
    """How many drafts agree with the targets before the first that does not.

    Args:
        drafts: (k,) token ids.
        targets: (k + 1,) tokens drawn from the target laws.

    Returns:
        An integer scalar j; targets[: j + 1] are emitted.
    """
    agree = drafts == targets[: drafts.shape[0]]
    return mx.sum(mx.cumprod(agree.astype(mx.int32), axis=0))


def count_accepted(drafts: mx.array, p: mx.array, q: mx.array, uniforms: mx.array) -> mx.array:
    """How many drafts stand under the rejection rule.

    Args:
        drafts: (k,) token ids, drafts[i] drawn from q[i].
        p: (k + 1, V) target probabilities.
        q: (k, V) draft probabilities.
        uniforms: (k,) in [0, 1), independent.

    Returns:
        An integer scalar j; drafts[:j] are emitted and then one token from `correction_law`.
    """
    at_draft = drafts[:, None]
    p_draft = mx.take_along_axis(p[: drafts.shape[0]], at_draft, axis=-1)[:, 0]
    q_draft = mx.take_along_axis(q, at_draft, axis=-1)[:, 0]
    # Strictly less, so that a draft the target forbids is never accepted, not even at u = 0.
    accepted = uniforms * q_draft < p_draft
    return mx.sum(mx.cumprod(accepted.astype(mx.int32), axis=0))


def correction_law(p: mx.array, q: mx.array, accepted: mx.array) -> mx.array:
    """The law of the token emitted after the accepted drafts.

    Args:
        p: (k + 1, V) target probabilities.
        q: (k, V) draft probabilities.
        accepted: Integer scalar from `count_accepted`.

    Returns:
        (V,) probabilities: the normalised (p - q)_+ of the rejected row, or p's last row when
        every draft stood.
    """
    target = mx.take(p, accepted, axis=0)
    no_draft = mx.zeros_like(p[:1])
    proposal = mx.take(mx.concatenate([q, no_draft]), accepted, axis=0)
    excess = mx.maximum(target - proposal, 0.0)
    mass = mx.sum(excess)
    # No excess means p = q up to rounding, where a rejection has probability zero.
    return mx.where(mass > 0.0, excess / mx.where(mass > 0.0, mass, 1.0), target)
