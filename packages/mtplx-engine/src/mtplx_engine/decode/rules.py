"""The three ways to choose tokens, each serving plain rows and drafted blocks alike.

A rule draws drafts from the head's logits and judges them with the trunk's. The maths is in
`verify`; here it meets an answer's law and noise. A draft may also be given: copied from earlier
text, or forced by a grammar. Positions are absolute: the position of a
token is its index in prompt plus answer.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from mtplx_engine.backend import mx

from mtplx_engine.decode.law import Law
from mtplx_engine.decode.noise import Purpose
from mtplx_engine.decode.sampling import draw
from mtplx_engine.decode.verify import correction_law, count_accepted, count_matches

RuleName = Literal["greedy", "coupled", "rejection"]


@dataclass(frozen=True, slots=True)
class Draft:
    """One drafted token.

    Attributes:
        token: Integer scalar, an id of the full vocabulary.
        evidence: What the rule needs to judge it, of the rule's own making; None for a token that
            was given, not drawn.
    """

    token: mx.array
    evidence: mx.array | None = None


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

    def draft(self, logits: mx.array, position: int, before: list[mx.array]) -> Draft:
        """Guess the token at `position`, after some drafts, from the head's (V',) logits."""

    def judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        """Judge one or more drafts for `position` and on with the trunk's (k + 1, V) logits."""


def make_rule(name: RuleName, law: Law) -> Rule:
    """The rule of that name for one answer."""
    match name:
        case "greedy":
            return Greedy(law)
        case "coupled":
            return Coupled(law)
        case "rejection":
            return Rejection(law)


def tokens_of(drafts: list[Draft]) -> list[mx.array]:
    """The drafted tokens, integer scalars."""
    return [draft.token for draft in drafts]


class Greedy:
    """The most probable token, always."""

    name: RuleName = "greedy"

    def __init__(self, law: Law) -> None:
        self._law = law

    def token(self, logits: mx.array, position: int) -> mx.array:
        """See `Rule.token`."""
        return mx.argmax(self._law.adjusted(logits[None], position, [])[0])

    def draft(self, logits: mx.array, position: int, before: list[mx.array]) -> Draft:
        """See `Rule.draft`."""
        choice = mx.argmax(self._law.adjusted_draft(logits, position, before))
        return Draft(self._law.vocabulary.full_id(choice))

    def judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        """See `Rule.judge`."""
        tokens = tokens_of(drafts)
        targets = mx.argmax(self._law.adjusted(logits, position, tokens), axis=-1)
        return Verdict(count_matches(mx.stack(tokens), targets), targets)


class _Drawing:
    """What the rules that draw have in common: how a token is drawn without drafts."""

    def __init__(self, law: Law) -> None:
        self._law = law

    def token(self, logits: mx.array, position: int) -> mx.array:
        """See `Rule.token`."""
        return draw(self._law.log_law(logits[None], position, [])[0], self._gumbel(position))

    def _gumbel(self, position: int) -> mx.array:
        return self._law.noise.gumbel(position, self._law.vocabulary.size, Purpose.TOKEN)


class Coupled(_Drawing):
    """Draft and target share their noise, so that the answer depends on the seed alone.

    The evidence of a draft is that noise, (V,).
    """

    name: RuleName = "coupled"

    def draft(self, logits: mx.array, position: int, before: list[mx.array]) -> Draft:
        """See `Rule.draft`."""
        gumbel = self._gumbel(position)
        law = self._law.log_draft_law(logits, position, before)
        choice = draw(law, self._law.vocabulary.restrict(gumbel))
        return Draft(self._law.vocabulary.full_id(choice), gumbel)

    def judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        """See `Rule.judge`."""
        tokens = tokens_of(drafts)
        known = [draft.evidence for draft in drafts]
        gumbel = [
            self._gumbel(position + i) if noise is None else noise
            for i, noise in enumerate([*known, None])
        ]
        targets = draw(self._law.log_law(logits, position, tokens), mx.stack(gumbel))
        return Verdict(count_matches(mx.stack(tokens), targets), targets)


class Rejection(_Drawing):
    """Drafts drawn from the head's law and corrected by the trunk's.

    The evidence of a draft is the (V',) log-law that it was drawn from.
    """

    name: RuleName = "rejection"

    def draft(self, logits: mx.array, position: int, before: list[mx.array]) -> Draft:
        """See `Rule.draft`."""
        law = self._law.log_draft_law(logits, position, before)
        gumbel = self._law.noise.gumbel(position, law.shape[-1], Purpose.DRAFT)
        return Draft(self._law.vocabulary.full_id(draw(law, gumbel)), law)

    def judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        """See `Rule.judge`."""
        tokens, noise = tokens_of(drafts), self._law.noise
        p = mx.exp(self._law.log_law(logits, position, tokens))
        q = mx.concatenate([self._proposal(draft) for draft in drafts])
        ids = mx.stack(tokens)
        uniforms = mx.stack(
            [noise.uniform(position + i, Purpose.ACCEPT) for i in range(len(drafts))]
        )
        accepted = count_accepted(ids, p, q, uniforms)
        # One token a round is drawn here, and no two rounds start at the same position, so the
        # start of the round keys the noise wherever the token ends up.
        last = draw(mx.log(correction_law(p, q, accepted)), self._gumbel(position))
        at = mx.arange(len(drafts) + 1)
        padded = mx.concatenate([ids, ids[-1:]])
        return Verdict(accepted, mx.where(at == accepted, last, padded))

    def _proposal(self, draft: Draft) -> mx.array:
        """(1, V) probabilities that the draft was drawn from; of a given one, a certainty."""
        vocabulary = self._law.vocabulary
        if draft.evidence is not None:
            return vocabulary.expand(mx.exp(draft.evidence)[None])
        return (mx.arange(vocabulary.size) == draft.token).astype(mx.float32)[None]
