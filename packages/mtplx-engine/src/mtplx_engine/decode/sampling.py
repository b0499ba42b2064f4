"""From logits to the law that a token is drawn from, and drawing from it.

One pipeline serves every row, whether it is decoded alone or verified in a block:
temperature, then top_k, top_p and min_p, each on what the one before left.
"""

from dataclasses import dataclass

from mtplx_engine.backend import mx

from mtplx_engine.errors import NonFiniteLogits

# Below this, dividing by the temperature leaves the range of float32 and the law is that of an
# argmax anyway.
_LEAST_TEMPERATURE = 1e-6


@dataclass(frozen=True, slots=True)
class Sampler:
    """A request's sampling with every default resolved; see `request.Sampling` for the terms."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is taken, so that there is nothing to draw."""
        return self.temperature < _LEAST_TEMPERATURE

    def log_law(self, logits: mx.array) -> mx.array:
        """(..., V) logits -> (..., V) log-probabilities; -inf for what the filters drop.

        Computed in float32, or in float64 when the logits are. Tokens that tie with the last one
        kept are kept too.
        """
        wide = logits if logits.dtype == mx.float64 else logits.astype(mx.float32)
        # The largest becomes 0 first: a small temperature must not push it out of range.
        top = mx.max(wide, axis=-1, keepdims=True)
        law = _normalise((wide - top) / self.temperature)
        if 0 < self.top_k < law.shape[-1]:
            law = _keep_top_k(law, self.top_k)
        if self.top_p < 1.0:
            law = _keep_top_p(law, self.top_p)
        if self.min_p > 0.0:
            law = _keep_min_p(law, self.min_p)
        return law


def _normalise(logits: mx.array) -> mx.array:
    return logits - mx.logsumexp(logits, axis=-1, keepdims=True)


def _keep(law: mx.array, kept: mx.array) -> mx.array:
    return _normalise(mx.where(kept, law, -mx.inf))


def _keep_top_k(law: mx.array, k: int) -> mx.array:
    kth = mx.min(mx.topk(law, k, axis=-1), axis=-1, keepdims=True)
    return _keep(law, law >= kth)


def _keep_top_p(law: mx.array, p: float) -> mx.array:
    descending = -mx.sort(-law, axis=-1)
    mass = mx.exp(descending)
    before = mx.cumsum(mass, axis=-1) - mass
    # The most probable token stays however small p is; p may even round to zero.
    kept = (before < p) | (before == 0.0)
    last = mx.min(mx.where(kept, descending, mx.inf), axis=-1, keepdims=True)
    return _keep(law, law >= last)


def _keep_min_p(law: mx.array, min_p: float) -> mx.array:
    top = mx.max(law, axis=-1, keepdims=True)
    return _keep(law, law >= top + mx.log(mx.array(min_p, dtype=law.dtype)))


def draw(log_law: mx.array, gumbel: mx.array) -> mx.array:
    """Draw from (..., V) log-probabilities with Gumbel noise of the same shape -> (...) tokens.

    The Gumbel-max trick: argmax(log p + g) has law p. With the noise fixed, similar laws draw
    the same token, which is what couples a draft to its target.
    """
    return mx.argmax(log_law + gumbel, axis=-1)


def finite(logits: mx.array) -> mx.array:
    """(..., V) logits -> (...) booleans: whether a row defines a law."""
    return mx.isfinite(mx.logsumexp(logits.astype(mx.float32), axis=-1))


def check_finite(ok: int, position: int) -> None:
    """Raise when the logits for the token at `position` were not numbers.

    Raises:
        NonFiniteLogits: `ok` is false.
    """
    if not ok:
        raise NonFiniteLogits(
            f"The model produced NaN or infinite logits for token {position}. The weights may be"
            " damaged, or their number type too narrow for this input."
        )
