"""The law of each token of one answer: what the model says, adjusted, masked and filtered.

Plain rows, drafted rows and verified rows all go through here, so that a row does not know how it
came to be computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mtplx_engine.backend import mx

import numpy as np
from numpy.typing import NDArray

from mtplx_engine.decode.adjust import Adjuster
from mtplx_engine.decode.noise import Noise, Purpose
from mtplx_engine.decode.sampling import Sampler, XTCGate


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of the trunk and those that its head drafts over.

    Attributes:
        size: V, the trunk's.
        drafted: (V',) ids in the order of the head's logits; None when it drafts over all.
    """

    size: int
    drafted: mx.array | None

    def full_id(self, index: mx.array) -> mx.array:
        """Ids of the full vocabulary for indices into the head's logits."""
        return index if self.drafted is None else self.drafted[index]

    def restrict(self, values: mx.array) -> mx.array:
        """(V,) values of all tokens -> (V',) values of the drafted ones."""
        return values if self.drafted is None else values[self.drafted]

    def expand(self, law: mx.array) -> mx.array:
        """(k, V') probabilities over the drafted tokens -> (k, V), zero elsewhere."""
        if self.drafted is None:
            return law
        wide = mx.zeros((law.shape[0], self.size), dtype=law.dtype)
        wide[:, self.drafted] = law
        return wide


class Law:
    """Turns logits into laws along one answer.

    Args:
        sampler: The filters.
        adjuster: What happens to the logits first; None: nothing.
        end_tokens: Ids that end the answer. XTC never drops them.
        ends_from: Absolute position from which on they may be drawn.

    Attributes:
        noise: The answer's random numbers.
        vocabulary: The tokens of trunk and head.
    """

    def __init__(
        self,
        sampler: Sampler,
        noise: Noise,
        vocabulary: Vocabulary,
        *,
        adjuster: Adjuster | None = None,
        end_tokens: Sequence[int] = (),
        ends_from: int = 0,
    ) -> None:
        self.noise = noise
        self.vocabulary = vocabulary
        self._sampler = sampler
        self._adjuster = adjuster
        self._masks: dict[int, mx.array] = {}
        self._ends_from = ends_from if end_tokens else 0
        self._inner = np.ones(vocabulary.size, dtype=np.bool_)  # what does not end the answer
        self._inner[[token for token in end_tokens if token < vocabulary.size]] = False
        if not self._inner.any():  # nothing else could be drawn
            self._ends_from = 0
        self._spared = mx.array(~self._inner)

    def allow(self, position: int, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Restrict a position to the tokens that are true in `allowed`, (V,) booleans.

        Returns:
            What may be drawn there: too early, an end token only where nothing else is allowed.
        """
        if position < self._ends_from and (inner := allowed & self._inner).any():
            allowed = inner
        self._masks[position] = mx.array(allowed)
        return allowed

    def extend(self, tokens: mx.array) -> None:
        """(m,) tokens joined the answer; masks of the round are forgotten."""
        self._masks.clear()
        if self._adjuster is not None:
            self._adjuster.extend(tokens)

    def adjusted(self, logits: mx.array, position: int, drafts: list[mx.array]) -> mx.array:
        """The trunk's (k + 1, V) logits after k drafts -> the same, adjusted and masked."""
        if self._adjuster is None and not self._masks and position >= self._ends_from:
            return logits
        rows = [self._adjust(logits[i], position + i, drafts[:i]) for i in range(logits.shape[0])]
        return mx.stack(rows)

    def log_law(self, logits: mx.array, position: int, drafts: list[mx.array]) -> mx.array:
        """The trunk's (k + 1, V) logits after k drafts -> (k + 1, V) log-probabilities."""
        adjusted = self.adjusted(logits, position, drafts)
        return self._sampler.log_law(adjusted, self._gate(position, logits.shape[0], self._spared))

    def adjusted_draft(self, logits: mx.array, position: int, drafts: list[mx.array]) -> mx.array:
        """The head's (V',) logits after some drafts -> the same, adjusted and masked."""
        return self._adjust(logits, position, drafts, self.vocabulary.drafted)

    def log_draft_law(self, logits: mx.array, position: int, drafts: list[mx.array]) -> mx.array:
        """The head's (V',) logits after some drafts -> (V',) log-probabilities."""
        gate = self._gate(position, 1, self.vocabulary.restrict(self._spared))
        return self._sampler.log_law(self.adjusted_draft(logits, position, drafts)[None], gate)[0]

    def _adjust(
        self,
        logits: mx.array,
        position: int,
        drafts: list[mx.array],
        columns: mx.array | None = None,
    ) -> mx.array:
        if self._adjuster is not None:
            logits = self._adjuster.row(logits, drafts, columns)
        mask = self._masks.get(position)
        if mask is None and position < self._ends_from:
            mask = ~self._spared
        if mask is None:
            return logits
        return mx.where(mask if columns is None else mask[columns], logits, -mx.inf)

    def _gate(self, position: int, rows: int, spared: mx.array) -> XTCGate | None:
        if not self._sampler.has_xtc:
            return None
        # One draw a position, shared by the draft and its target: the mixture over it is the law.
        uniforms = [self.noise.uniform(position + i, Purpose.XTC) for i in range(rows)]
        return XTCGate(mx.stack(uniforms) < self._sampler.xtc_probability, spared)
