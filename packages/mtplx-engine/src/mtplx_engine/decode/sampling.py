"""From logits to the law that a token is drawn from, and drawing from it.

One pipeline serves every row, whether it is decoded alone or verified in a block. This module has
the part of it that needs no history: top-n-sigma, temperature, then top_k, top_p, min_p and XTC,
each on what the one before left. What depends on the tokens before is in `adjust`.
"""

from dataclasses import dataclass

from mtplx_engine.backend import mx

from mtplx_engine.errors import NonFiniteLogits

# Below this, dividing by the temperature leaves the range of float32 and the law is that of an
# argmax anyway.
_LEAST_TEMPERATURE = 1e-6


@dataclass(frozen=True, slots=True)
class Sampler:
    """A request's filters with every default resolved; see `request.Sampling` for the terms."""

    temperature: float
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 1.0

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is taken, so that there is nothing to draw."""
        return self.temperature < _LEAST_TEMPERATURE

    @property
    def has_xtc(self) -> bool:
        """Whether the most probable tokens are ever dropped."""
        # Two tokens cannot both be more probable than a half.
        return not self.greedy and self.xtc_probability > 0.0 and self.xtc_threshold <= 0.5

    def log_law(self, logits: mx.array, gate: "XTCGate | None" = None) -> mx.array:
        """(..., V) logits -> (..., V) log-probabilities; -inf for what the filters drop.

        Computed in float32, or in float64 when the logits are. Tokens that tie with the last one
        kept are kept too.

        Args:
            logits: Adjusted logits.
            gate: Where XTC strikes; None: nowhere.
        """
        wide = logits if logits.dtype == mx.float64 else logits.astype(mx.float32)
        # The largest becomes 0 first: a small temperature must not push it out of range.
        centred = wide - mx.max(wide, axis=-1, keepdims=True)
        if self.top_n_sigma > 0.0:
            centred = _keep_top_n_sigma(centred, self.top_n_sigma)
        law = _normalise(centred / self.temperature)
        if 0 < self.top_k < law.shape[-1]:
            law = _keep_top_k(law, self.top_k)
        if self.top_p < 1.0:
            law = _keep_top_p(law, self.top_p)
        if self.min_p > 0.0:
            law = _keep_min_p(law, self.min_p)
        if gate is not None:
            law = _drop_top_choices(law, self.xtc_threshold, gate)
        return law


@dataclass(frozen=True, slots=True)
class XTCGate:
    """Where XTC strikes.

    Attributes:
        strikes: (...) booleans, one a row.
        spared: (V,) booleans, tokens that are never dropped.
    """

    strikes: mx.array
    spared: mx.array


def _normalise(logits: mx.array) -> mx.array:
    return logits - mx.logsumexp(logits, axis=-1, keepdims=True)


def _keep(law: mx.array, kept: mx.array) -> mx.array:
    return _normalise(mx.where(kept, law, -mx.inf))


def _keep_top_n_sigma(centred: mx.array, n: float) -> mx.array:
    """Over logits whose largest is 0; banned tokens (-inf) do not count for the deviation."""
    there = mx.isfinite(centred)
    count = mx.sum(there, axis=-1, keepdims=True)
    values = mx.where(there, centred, 0.0)
    mean = mx.sum(values, axis=-1, keepdims=True) / count
    spread = mx.where(there, mx.square(centred - mean), 0.0)
    sigma = mx.sqrt(mx.sum(spread, axis=-1, keepdims=True) / count)
    return mx.where(centred >= -n * sigma, centred, -mx.inf)


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


def _drop_top_choices(law: mx.array, threshold: float, gate: XTCGate) -> mx.array:
    """XTC: of the tokens at least `threshold` probable, only the least probable stays."""
    likely = mx.isfinite(law) & (law >= mx.log(mx.array(threshold, dtype=law.dtype)))
    least = mx.min(mx.where(likely, law, mx.inf), axis=-1, keepdims=True)
    dropped = likely & (law > least) & ~gate.spared & gate.strikes[..., None]
    return _keep(law, ~dropped)


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
