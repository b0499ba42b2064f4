"""Everything that can happen in one round of a toy model, with its probability.

As in `test_verify_exact` the probability of every way a round can go is summed, but here the rows
come from `Law` with everything that looks at the tokens before: penalties, masks, barred tokens,
XTC. Plain decoding is a fresh `Law` that was told every token by itself. A row of a block must not
know how it came to be computed, so both give the same numbers to the last bit. MLX has exp and log
of a float64 with float32 accuracy only; the same error enters both sides, so the bound is 1e-12.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mtplx_engine.backend import mx

import numpy as np
from numpy.typing import NDArray

from mtplx_engine.decode.adjust import Adjuster, Adjustments
from mtplx_engine.decode.law import Law, Vocabulary
from mtplx_engine.decode.masking import Masking
from mtplx_engine.decode.noise import Noise, Purpose
from mtplx_engine.decode.rules import Draft, Rejection
from mtplx_engine.decode.sampling import Sampler
from mtplx_engine.decode.verify import correction_law, count_accepted

Tokens = tuple[int, ...]
Joint = dict[Tokens, float]
Gates = tuple[bool, ...]

SIZE = 4
END = 3
EXACT = 1e-12
PROMPT: Tokens = (0, 1, 1)
ANSWER: Tokens = (2, 0)  # drawn before the round
START = len(PROMPT) + len(ANSWER)


class GatedNoise(Noise):
    """Noise whose XTC gates are given, one for each position from `START` on."""

    def __init__(self, gates: Gates, seed: int = 0) -> None:
        super().__init__(seed)
        self._gates = gates

    def uniform(self, position: int, purpose: Purpose) -> mx.array:
        if purpose is Purpose.XTC:
            return mx.array(0.0 if self._gates[position - START] else 1.0)
        return super().uniform(position, purpose)


class Toy:
    """A grammar over four tokens, by a function of what was said since `ANSWER`."""

    def __init__(self, allows: Callable[[Tokens], Sequence[int]]) -> None:
        self._allows = allows
        self._said: list[int] = []

    def allowed(self) -> NDArray[np.bool_]:
        mask = np.zeros(SIZE, np.bool_)
        mask[list(self._allows(tuple(self._said)))] = True
        return mask

    def advance(self, token: int) -> None:
        if not self.allowed()[token]:
            raise ValueError(token)
        self._said.append(token)

    def roll_back(self, count: int) -> None:
        del self._said[len(self._said) - count :]

    def forced(self, most: int) -> list[int]:
        raise NotImplementedError


def no_repeats(said: Tokens) -> Sequence[int]:
    """Any token but the last one; after a 2 only a 1 or the end."""
    if not said:
        return (0, 1, 2)
    return (1, END) if said[-1] == 2 else tuple({0, 1, 2, END} - {said[-1]})


PLAIN, NOTHING = Sampler(1.0), Adjustments()


@dataclass(frozen=True)
class Case:
    """What a request may ask for."""

    sampler: Sampler = PLAIN
    asked: Adjustments = NOTHING
    least: int = 0  # tokens from START on before which nothing may end
    grammar: Callable[[Tokens], Sequence[int]] | None = None
    drafted: Tokens | None = None  # what the head drafts over; None: all
    gates: Gates = (False,) * 8

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(SIZE, None if self.drafted is None else mx.array(self.drafted))

    def law(self, said: Tokens, *, seed: int = 0) -> tuple[Law, Masking | None]:
        """The law after these tokens, one by one, ready for the next round."""
        law = Law(
            self.sampler,
            GatedNoise(self.gates, seed),
            self.vocabulary,
            adjuster=None if self.asked.none else Adjuster(self.asked, SIZE, PROMPT),
            end_tokens=(END,),
            ends_from=START + self.least,
        )
        for token in (*ANSWER, *said):
            law.extend(mx.array([token]))
        if self.grammar is None:
            return law, None
        toy = Toy(self.grammar)
        for token in said:
            toy.advance(token)
        masking = Masking(toy, frozenset({END}), None)
        masking.begin(law, START + len(said))
        return law, masking


WINDOW = Adjustments((), 2.0, 0.5, 0.75, penalty_window=2)
PENALTIES = Adjustments(repetition_penalty=2.0, presence_penalty=0.5, frequency_penalty=0.75)
CASES = {
    "nothing": Case(),
    "repetition": Case(asked=Adjustments(repetition_penalty=2.5)),
    "presence": Case(asked=Adjustments(presence_penalty=1.0)),
    "frequency": Case(asked=Adjustments(frequency_penalty=0.8)),
    "negative": Case(asked=Adjustments(frequency_penalty=-0.8, presence_penalty=-0.3)),
    "penalties": Case(asked=PENALTIES),
    "window 1": Case(asked=Adjustments((), 3.0, 1.0, 1.0, penalty_window=1)),
    "window 2": Case(asked=WINDOW),
    "window 4": Case(asked=Adjustments((), 2.0, 0.5, 0.75, penalty_window=4)),
    "bias": Case(asked=Adjustments(logit_bias=((1, 1.5), (2, -100.0)))),
    "min_p": Case(Sampler(1.0, min_p=0.3), PENALTIES),
    "top_n_sigma": Case(Sampler(0.7, top_n_sigma=1.0), PENALTIES),
    "top_k and top_p": Case(Sampler(1.2, top_k=3, top_p=0.8), PENALTIES),
    "min_tokens": Case(least=2),
    "min_tokens and penalties": Case(asked=PENALTIES, least=1),
    "grammar": Case(grammar=no_repeats),
    "grammar, window, min_tokens": Case(Sampler(0.8, min_p=0.1), WINDOW, 2, no_repeats),
    "reduced": Case(asked=PENALTIES, drafted=(2, 0)),
    "reduced, grammar": Case(asked=WINDOW, grammar=no_repeats, drafted=(1, 2, 3)),
}


def double(values: NDArray[np.float64]) -> mx.array:
    return mx.array(values, dtype=mx.float64)


class Model:
    """Logits of a trunk and of a head for every context."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def trunk(self, said: Tokens) -> mx.array:
        return self._logits(0, said, SIZE)

    def head(self, said: Tokens, case: Case) -> mx.array:
        """Like the trunk's, but not quite."""
        noise = self._logits(1, said, SIZE)
        logits = 0.6 * self.trunk(said) + 0.6 * noise
        return logits if case.drafted is None else logits[mx.array(case.drafted)]

    def _logits(self, kind: int, said: Tokens, size: int) -> mx.array:
        generator = np.random.default_rng([self._seed, kind, len(said), *said])
        logits = generator.normal(size=size) * 1.5
        logits[END] -= 1.0  # most answers are to last a while
        return double(logits)


def normal(log_law: mx.array) -> NDArray[np.float64]:
    p = np.array(mx.exp(log_law))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


class Plain:
    """One token at a time: p(token | said), up to the end of the answer."""

    def __init__(self, case: Case, model: Model) -> None:
        self._case, self._model = case, model
        self._known: dict[Tokens, NDArray[np.float64]] = {}

    def __call__(self, said: Tokens) -> NDArray[np.float64]:
        if said not in self._known:
            law, _ = self._case.law(said)
            logits = self._model.trunk(said)[None]
            self._known[said] = normal(law.log_law(logits, START + len(said), []))[0]
        return self._known[said]

    def extend(self, joint: Joint, said: Tokens, weight: float, length: int) -> None:
        """Complete an answer that ends at END or at a length."""
        if END in said:
            said = said[: said.index(END) + 1]
        if weight == 0.0:
            return
        if len(said) >= length or END in said:
            joint[said[:length]] = joint.get(said[:length], 0.0) + weight
            return
        for token in range(SIZE):
            self.extend(joint, (*said, token), weight * self(said)[token], length)

    def joint(self, length: int) -> Joint:
        joint: Joint = {}
        self.extend(joint, (), 1.0, length)
        return joint


Given = Callable[[Tokens], int | None]


def nothing_given(_: Tokens) -> None:
    return None


@dataclass
class Block:
    """Drafts for one round, judged rows included."""

    drafts: Tokens
    chance: float
    p: NDArray[np.float64]
    q: NDArray[np.float64]


def block(
    case: Case, model: Model, drafts: Tokens, given: Given, *, frozen: str = ""
) -> Block | None:
    """Draft and read one block as the decoder does; None where it cannot come about.

    A block that a given draft would lead out of the grammar ends before it. `frozen` names the
    rows that are computed as if nothing had been drafted before them.
    """
    law, masking = case.law(())
    rule = Rejection(law)
    chance, q_rows = 1.0, []
    for i, token in enumerate(drafts):
        before = [mx.array(draft) for draft in drafts[:i]]
        fixed = given(drafts[:i])
        if fixed is not None:
            if masking is not None and not masking.allows(fixed):
                drafts = drafts[:i]
                break
            chance *= fixed == token
            q_rows.append(np.array(rule._proposal(Draft(mx.array(token))))[0])
        else:
            if masking is not None and not masking.open_to_head:
                drafts = drafts[:i]
                break
            logits = model.head(drafts[:i], case)
            log_q = law.log_draft_law(logits, START + i, before)
            chance *= _at(case, normal(log_q), token)
            if "q" in frozen:
                log_q = law.log_draft_law(logits, START + i, [])
            q_rows.append(np.array(case.vocabulary.expand(double(normal(log_q))[None]))[0])
        if chance == 0.0:
            return None
        if masking is not None:
            masking.follow(token)
    rows = mx.stack([model.trunk(drafts[:i]) for i in range(len(drafts) + 1)])
    log_p = law.log_law(rows, START, [mx.array(draft) for draft in drafts])
    if "p" in frozen:
        each = [law.log_law(rows[i : i + 1], START + i, []) for i in range(len(drafts) + 1)]
        log_p = mx.concatenate(each)
    return Block(drafts, chance, normal(log_p), np.array(q_rows).reshape(len(drafts), SIZE))


def _at(case: Case, law: NDArray[np.float64], token: int) -> float:
    ids = list(range(SIZE)) if case.drafted is None else list(case.drafted)
    return float(law[ids.index(token)]) if token in ids else 0.0


def patterns(thresholds: Sequence[float]) -> Iterator[tuple[list[float], float]]:
    """Uniforms and weight of every pattern of acceptance: j accepted, then one rejected."""
    for accepted in range(len(thresholds) + 1):
        weight = float(np.prod(thresholds[:accepted]))
        uniforms = [t / 2 for t in thresholds]
        if accepted < len(thresholds):
            weight *= 1.0 - thresholds[accepted]
            uniforms[accepted] = (1.0 + thresholds[accepted]) / 2
        if weight > 0.0:
            yield uniforms, weight


def is_said(grammar: Callable[[Tokens], Sequence[int]], said: Tokens) -> bool:
    """Whether the grammar allows this, with nothing after an end."""
    return all(t in grammar(said[:i]) for i, t in enumerate(said)) and END not in said[:-1]


def speculative(
    case: Case, model: Model, depth: int, given: Given = nothing_given, *, frozen: str = ""
) -> Joint:
    plain, joint = Plain(case, model), Joint()
    seen: set[Tokens] = set()
    for drafts in itertools.product(range(SIZE), repeat=depth):
        round_ = block(case, model, drafts, given, frozen=frozen)
        if round_ is None or round_.drafts in seen:
            continue
        seen.add(round_.drafts)
        p, q = double(round_.p), double(round_.q)
        thresholds = [
            min(1.0, round_.p[i][t] / round_.q[i][t]) for i, t in enumerate(round_.drafts)
        ]
        for uniforms, weight in patterns(thresholds):
            accepted, law = 0, round_.p[0]
            if round_.drafts:
                u = mx.array(uniforms, dtype=mx.float64)
                count = count_accepted(mx.array(round_.drafts), p, q, u)
                accepted, law = int(count.item()), np.array(correction_law(p, q, count))
            for token in range(SIZE):
                share = round_.chance * weight * float(law[token])
                kept = (*round_.drafts[:accepted], token)
                plain.extend(joint, kept, share, depth + 1)
    return joint


def distance(a: Joint, b: Joint) -> float:
    """Total variation."""
    return 0.5 * sum(abs(a.get(x, 0.0) - b.get(x, 0.0)) for x in a.keys() | b.keys())
