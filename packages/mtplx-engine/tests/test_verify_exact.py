"""The accept and residual functions, enumerated over every path of a round.

The harness sums the probability of every way a round can go: every block of drafts, every pattern
of acceptance (with injected uniforms on either side of each threshold), every token that follows.
The law of the first k + 1 tokens must be that of plain decoding.
"""

import itertools
from collections.abc import Callable

from mtplx_engine.backend import mx

import numpy as np
import pytest
from enumeration import patterns

from mtplx_engine.decode.law import Vocabulary
from mtplx_engine.decode.sampling import Sampler
from mtplx_engine.decode.verify import correction_law, count_accepted, count_matches

Context = tuple[int, ...]
Law = Callable[[Context], np.ndarray]
Joint = dict[Context, float]
Count = Callable[[mx.array, mx.array, mx.array, mx.array], mx.array]
Correct = Callable[[mx.array, mx.array, mx.array], mx.array]

SIZE = 4
EXACT = 1e-12
SAMPLERS = {
    "unfiltered": Sampler(1.0, 0, 1.0, 0.0),
    "temperature": Sampler(0.6, 0, 1.0, 0.0),
    "top_k": Sampler(1.3, 2, 1.0, 0.0),
    "top_p": Sampler(1.0, 0, 0.7, 0.0),
    "min_p": Sampler(1.0, 0, 1.0, 0.3),
    "all": Sampler(0.8, 3, 0.9, 0.05),
}


def random_laws(seed: int, sampler: Sampler, size: int = SIZE) -> Law:
    """A law for every context, filtered by the product's own pipeline."""
    generator = np.random.default_rng(seed)
    laws: dict[Context, np.ndarray] = {}

    def law(context: Context) -> np.ndarray:
        if context not in laws:
            logits = mx.array(generator.normal(size=size) * 2.0, dtype=mx.float64)
            filtered = np.array(mx.exp(sampler.log_law(logits)))
            # MLX computes exp and log of a float64 with float32 accuracy.
            laws[context] = filtered / filtered.sum()
        return laws[context]

    return law


def plain(p: Law, length: int) -> Joint:
    joint: Joint = {}
    for tokens in itertools.product(range(SIZE), repeat=length):
        joint[tokens] = float(np.prod([p(tokens[:i])[tokens[i]] for i in range(length)]))
    return joint


def extend(joint: Joint, p: Law, prefix: Context, weight: float, length: int) -> None:
    """Complete a prefix by plain decoding and add what comes out."""
    if weight == 0.0:
        return
    if len(prefix) >= length:
        joint[prefix[:length]] = joint.get(prefix[:length], 0.0) + weight
        return
    for token in range(SIZE):
        extend(joint, p, (*prefix, token), weight * p(prefix)[token], length)


def speculative(
    p: Law,
    q: Law,
    depth: int,
    vocabulary: Vocabulary | None = None,
    count: Count = count_accepted,
    correct: Correct = correction_law,
) -> Joint:
    joint: Joint = {}
    drafted = vocabulary or Vocabulary(SIZE, None)
    for drafts in itertools.product(range(SIZE), repeat=depth):
        laws = mx.array(np.stack([q(drafts[:i]) for i in range(depth)]), dtype=mx.float64)
        q_rows = drafted.expand(laws)
        proposal = np.array(q_rows)
        chance = float(np.prod([proposal[i][token] for i, token in enumerate(drafts)]))
        if chance == 0.0:
            continue
        p_rows = mx.array(np.stack([p(drafts[:i]) for i in range(depth + 1)]), dtype=mx.float64)
        thresholds = [
            min(1.0, p(drafts[:i])[token] / proposal[i][token]) for i, token in enumerate(drafts)
        ]
        for uniforms, weight in patterns(thresholds):
            u = mx.array(uniforms, dtype=mx.float64)
            accepted = count(mx.array(drafts), p_rows, q_rows, u)
            law = np.array(correct(p_rows, q_rows, accepted))
            kept = drafts[: int(accepted.item())]
            for token in range(SIZE):
                share = chance * weight * law[token]
                extend(joint, p, (*kept, token), share, depth + 1)
    return joint


def distance(a: Joint, b: Joint) -> float:
    """Total variation."""
    return 0.5 * sum(abs(a.get(x, 0.0) - b.get(x, 0.0)) for x in a.keys() | b.keys())


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", SAMPLERS)
def test_rejection_leaves_the_law_unchanged(name: str, depth: int) -> None:
    sampler = SAMPLERS[name]
    p, q = random_laws(1, sampler), random_laws(2, sampler)
    assert distance(speculative(p, q, depth), plain(p, depth + 1)) < EXACT


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_rejection_is_exact_when_only_the_target_is_filtered(depth: int) -> None:
    p, q = random_laws(3, SAMPLERS["top_p"]), random_laws(4, SAMPLERS["unfiltered"])
    assert distance(speculative(p, q, depth), plain(p, depth + 1)) < EXACT


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_rejection_is_exact_over_a_reduced_draft_vocabulary(depth: int) -> None:
    p, q = random_laws(5, SAMPLERS["all"]), random_laws(6, SAMPLERS["all"], size=2)
    vocabulary = Vocabulary(SIZE, mx.array([3, 1]))
    assert distance(speculative(p, q, depth, vocabulary), plain(p, depth + 1)) < EXACT


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_rejection_is_exact_when_draft_and_target_agree(depth: int) -> None:
    p = random_laws(7, SAMPLERS["unfiltered"])
    assert distance(speculative(p, p, depth), plain(p, depth + 1)) < EXACT


@pytest.mark.parametrize("margin", [1e-9, 1e-3, 0.3])
def test_the_threshold_of_acceptance_is_where_it_should_be(margin: float) -> None:
    p, q = mx.array([[0.3, 0.7], [0.5, 0.5]], dtype=mx.float64), mx.array([[0.6, 0.4]], mx.float64)
    for shift, expected in ((-margin, 1), (margin, 0)):
        u = mx.array([0.5 + shift], dtype=mx.float64)
        assert count_accepted(mx.array([0]), p, q, u).item() == expected


def test_a_draft_that_the_target_forbids_is_rejected_even_at_zero() -> None:
    p, q = mx.array([[0.0, 1.0], [0.5, 0.5]]), mx.array([[1.0, 0.0]])
    assert count_accepted(mx.array([0]), p, q, mx.array([0.0])).item() == 0


def wrong_count(drafts: mx.array, p: mx.array, q: mx.array, u: mx.array) -> mx.array:
    """Accepts with probability p instead of p / q."""
    return count_accepted(drafts, p, mx.ones_like(q), u)


def wrong_correction(p: mx.array, q: mx.array, accepted: mx.array) -> mx.array:
    """Draws from p instead of the residual."""
    return mx.take(p, accepted, axis=0)


def test_the_harness_sees_what_is_wrong() -> None:
    p, q = random_laws(1, SAMPLERS["unfiltered"]), random_laws(2, SAMPLERS["unfiltered"])
    target = plain(p, 3)
    assert distance(speculative(p, q, 2, count=wrong_count), target) > 0.01
    assert distance(speculative(p, q, 2, correct=wrong_correction), target) > 0.01


def independent(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.outer(q, p)


def maximal(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The coupling under which draft and target agree as often as they can."""
    joint = np.diag(np.minimum(p, q))
    left_q, left_p = q - np.diag(joint), p - np.diag(joint)
    rest = left_p.sum()
    return joint if rest == 0.0 else joint + np.outer(left_q, left_p) / rest


def greedy_draft(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    joint = np.zeros((len(q), len(p)))
    joint[int(np.argmax(q))] = p
    return joint


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("coupling", [independent, maximal, greedy_draft])
def test_matching_leaves_the_law_unchanged_under_any_coupling(
    coupling: Callable[[np.ndarray, np.ndarray], np.ndarray], depth: int
) -> None:
    """Draft i and target i may depend on each other in any way; positions are independent."""
    p, q = random_laws(8, SAMPLERS["top_k"]), random_laws(9, SAMPLERS["top_k"])
    joint: Joint = {}
    for drafts in itertools.product(range(SIZE), repeat=depth):
        pairs = [coupling(p(drafts[:i]), q(drafts[:i])) for i in range(depth)]
        last = p(drafts)
        for targets in itertools.product(range(SIZE), repeat=depth + 1):
            weight = float(last[targets[-1]])
            for i in range(depth):
                weight *= float(pairs[i][drafts[i], targets[i]])
            if weight == 0.0:
                continue
            accepted = int(count_matches(mx.array(drafts), mx.array(targets)).item())
            extend(joint, p, targets[: accepted + 1], weight, depth + 1)
    assert distance(joint, plain(p, depth + 1)) < EXACT
