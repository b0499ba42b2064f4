"""The three ways to choose tokens, each serving plain rows and drafted blocks alike.

A rule draws drafts from the head's logits and judges them with the trunk's. The maths is in
`verify`; here it meets a request's sampler and noise. Positions are absolute: the position of a
token is its index in prompt plus answer.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from mtplx_engine.backend import mx

from mtplx_engine.decode.noise import Noise, Purpose
from mtplx_engine.decode.sampling import Sampler, draw
from mtplx_engine.decode.verify import correction_law, count_accepted, count_matches

RuleName = Literal["greedy", "coupled", "rejection"]


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


@dataclass(frozen=True, slots=True)
class Draft:
    """One drafted token.

    Attributes:
        token: Integer scalar, an id of the full vocabulary.
        evidence: What the rule needs to judge it: the (V,) noise for `coupled`, the (V',)
            log-law it was drawn from for `rejection`, nothing for `greedy`.
    """

    token: mx.array
    evidence: mx.array | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a round emits: the first `accepted` + 1 entries of `tokens`.

    Attributes:
        accepted: Integer scalar.
        tokens: (k + 1,) token ids; entries past `accepted` mean nothing.
    """

    accepted: mx.array
    tokens: mx.array


class Rule(Protocol):
    """How tokens are chosen."""

    name: RuleName

    def token(self, logits: mx.array, position: int) -> mx.array:
        """Choose the token at `position` from the trunk's (V,) logits."""

    def draft(self, logits: mx.array, position: int) -> Draft:
        """Guess the token at `position` from the head's (V',) logits."""

    def judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        """Judge one or more drafts for `position` and on with the trunk's (k + 1, V) logits."""


def make_rule(name: RuleName, sampler: Sampler, noise: Noise, vocabulary: Vocabulary) -> Rule:
    """The rule of that name for one request."""
    match name:
        case "greedy":
            return Greedy(vocabulary)
        case "coupled":
            return Coupled(sampler, noise, vocabulary)
        case "rejection":
            return Rejection(sampler, noise, vocabulary)


def _ids(drafts: list[Draft]) -> mx.array:
    return mx.stack([draft.token for draft in drafts])


def _evidence(drafts: list[Draft]) -> list[mx.array]:
    return [draft.evidence for draft in drafts if draft.evidence is not None]


class Greedy:
    """The most probable token, always."""

    name: RuleName = "greedy"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def token(self, logits: mx.array, position: int) -> mx.array:
        """See `Rule.token`."""
        return mx.argmax(logits)

    def draft(self, logits: mx.array, position: int) -> Draft:
        """See `Rule.draft`."""
        return Draft(self._vocabulary.full_id(mx.argmax(logits)), None)

    def judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        """See `Rule.judge`."""
        targets = mx.argmax(logits, axis=-1)
        return Verdict(count_matches(_ids(drafts), targets), targets)


class Coupled:
    """Draft and target share their noise, so that the answer depends on the seed alone."""

    name: RuleName = "coupled"

    def __init__(self, sampler: Sampler, noise: Noise, vocabulary: Vocabulary) -> None:
        self._sampler = sampler
        self._noise = noise
        self._vocabulary = vocabulary

    def token(self, logits: mx.array, position: int) -> mx.array:
        """See `Rule.token`."""
        return draw(self._sampler.log_law(logits), self._gumbel(position))

    def draft(self, logits: mx.array, position: int) -> Draft:
        """See `Rule.draft`."""
        gumbel = self._gumbel(position)
        choice = draw(self._sampler.log_law(logits), self._vocabulary.restrict(gumbel))
        return Draft(self._vocabulary.full_id(choice), gumbel)

    def judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        """See `Rule.judge`."""
        gumbel = mx.stack([*_evidence(drafts), self._gumbel(position + len(drafts))])
        targets = draw(self._sampler.log_law(logits), gumbel)
        return Verdict(count_matches(_ids(drafts), targets), targets)

    def _gumbel(self, position: int) -> mx.array:
        return self._noise.gumbel(position, self._vocabulary.size, Purpose.TOKEN)


class Rejection:
    """Drafts drawn from the head's law and corrected by the trunk's."""

    name: RuleName = "rejection"

    def __init__(self, sampler: Sampler, noise: Noise, vocabulary: Vocabulary) -> None:
        self._sampler = sampler
        self._noise = noise
        self._vocabulary = vocabulary

    def token(self, logits: mx.array, position: int) -> mx.array:
        """See `Rule.token`."""
        return draw(self._sampler.log_law(logits), self._gumbel(position))

    def draft(self, logits: mx.array, position: int) -> Draft:
        """See `Rule.draft`."""
        law = self._sampler.log_law(logits)
        gumbel = self._noise.gumbel(position, law.shape[-1], Purpose.DRAFT)
        return Draft(self._vocabulary.full_id(draw(law, gumbel)), law)

    def judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        """See `Rule.judge`."""
        p = mx.exp(self._sampler.log_law(logits))
        q = self._vocabulary.expand(mx.exp(mx.stack(_evidence(drafts))))
        ids = _ids(drafts)
        uniforms = mx.stack(
            [self._noise.uniform(position + i, Purpose.ACCEPT) for i in range(len(drafts))]
        )
        accepted = count_accepted(ids, p, q, uniforms)
        # One token a round is drawn here, and no two rounds start at the same position, so the
        # start of the round keys the noise wherever the token ends up.
        last = draw(mx.log(correction_law(p, q, accepted)), self._gumbel(position))
        at = mx.arange(len(drafts) + 1)
        padded = mx.concatenate([ids, ids[-1:]])
        return Verdict(accepted, mx.where(at == accepted, last, padded))

    def _gumbel(self, position: int) -> mx.array:
        return self._noise.gumbel(position, self._vocabulary.size, Purpose.TOKEN)
