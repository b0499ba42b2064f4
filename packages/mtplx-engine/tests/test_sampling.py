"""The filters against their definitions, and the noise against its law."""

from mtplx_engine.backend import mx

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mtplx_engine.decode.law import Law, Vocabulary
from mtplx_engine.decode.noise import Noise, Purpose
from mtplx_engine.decode.rules import RuleName, make_rule
from mtplx_engine.decode.sampling import Sampler, draw, finite


def law(sampler: Sampler, logits: list[float]) -> np.ndarray:
    return np.array(mx.exp(sampler.log_law(mx.array(logits))))


def by_definition(sampler: Sampler, logits: list[float]) -> np.ndarray:
    p = np.exp(np.array(logits) / sampler.temperature)
    p /= p.sum()
    order = np.argsort(-p, kind="stable")
    kept = np.zeros(len(p), bool)
    count = sampler.top_k if 0 < sampler.top_k < len(p) else len(p)
    kept[order[:count]] = True
    p = np.where(kept, p, 0) / p[kept].sum()
    mass = 0.0
    for token in order:
        if mass >= sampler.top_p:
            p[token] = 0.0
        mass += p[token]
    p /= p.sum()
    p[p < sampler.min_p * p.max()] = 0.0
    return np.asarray(p / p.sum())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(-40, 40), min_size=3, max_size=12, unique=True),
    st.sampled_from([0.3, 1.0, 1.7]),
    st.integers(0, 12),
    st.sampled_from([0.1, 0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.05, 0.4]),
)
def test_filters_follow_their_definitions(
    tenths: list[int], temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    sampler = Sampler(temperature, top_k, top_p, min_p)
    logits = [value / 10 for value in tenths]
    np.testing.assert_allclose(law(sampler, logits), by_definition(sampler, logits), atol=2e-6)


def test_rows_are_filtered_as_if_alone() -> None:
    sampler = Sampler(0.8, 5, 0.9, 0.02)
    rows = mx.random.normal((4, 50), key=mx.random.key(0)) * 3
    together = np.array(sampler.log_law(rows))
    for index in range(4):
        np.testing.assert_array_equal(together[index], np.array(sampler.log_law(rows[index])))


def test_gumbel_noise_has_the_gumbel_law() -> None:
    noise = np.array(Noise(7).gumbel(3, 200_000, Purpose.TOKEN), dtype=np.float64)
    assert np.isfinite(noise).all()
    assert stats.kstest(noise, stats.gumbel_r.cdf).pvalue > 1e-4


def test_draws_are_independent_of_each_other() -> None:
    """Neither positions, nor purposes, nor neighbouring seeds share noise."""
    draws = [
        np.array(Noise(seed).gumbel(position, 4000, purpose))
        for seed in (0, 1)
        for position in (0, 1)
        for purpose in Purpose
    ]
    correlation = np.corrcoef(np.stack(draws)) - np.eye(len(draws))
    assert np.abs(correlation).max() < 0.08


def test_a_negative_seed_and_a_large_one_work() -> None:
    for seed in (-1, -(2**63), 2**64 - 1):
        assert np.isfinite(np.array(Noise(seed).gumbel(0, 10, Purpose.TOKEN))).all()


def test_drawing_has_the_law() -> None:
    log_law = mx.log(mx.array([0.5, 0.3, 0.15, 0.05]))
    counts = np.zeros(4)
    for position in range(4000):
        counts[draw(log_law, Noise(1).gumbel(position, 4, Purpose.TOKEN)).item()] += 1
    assert stats.chisquare(counts, np.array([0.5, 0.3, 0.15, 0.05]) * 4000).pvalue > 1e-4


@pytest.mark.parametrize("name", ["coupled", "rejection"])
def test_a_round_has_the_law_of_plain_decoding(name: RuleName) -> None:
    """The real rules with real noise; the exact proof is in test_verify_exact."""
    sampler = Sampler(1.0, 0, 1.0, 0.0)
    vocabulary = Vocabulary(4, mx.array([2, 0, 1]))
    target = mx.log(mx.array([[0.5, 0.2, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]))
    guess = mx.log(mx.array([0.2, 0.5, 0.3]))
    first, second, accepted = np.zeros(4), np.zeros(4), 0
    runs = 4000
    for seed in range(runs):
        rule = make_rule(name, Law(sampler, Noise(seed), vocabulary))
        verdict = rule.judge(target, [rule.draft(guess, 10, [])], 10)
        tokens = verdict.tokens.tolist()
        assert isinstance(tokens, list)
        first[tokens[0]] += 1
        if verdict.accepted.item():
            accepted += 1
            second[tokens[1]] += 1
    assert stats.chisquare(first, np.array([0.5, 0.2, 0.2, 0.1]) * runs).pvalue > 1e-4
    expected = np.array([0.1, 0.2, 0.3, 0.4]) * accepted
    assert stats.chisquare(second, expected).pvalue > 1e-4
    assert accepted > 0.6 * runs


def test_not_a_number_is_noticed_in_any_row() -> None:
    assert finite(mx.zeros((3, 5))).tolist() == [True] * 3
    for bad in (float("nan"), float("inf")):
        spoiled = mx.zeros((3, 5))
        spoiled[1, 2] = bad
        assert finite(spoiled).tolist() == [True, False, True]
    masked = mx.zeros((3, 5))
    masked[1, 2] = -float("inf")
    assert finite(masked).tolist() == [True] * 3


@pytest.mark.parametrize("p", [1e-50, 1e-30, 1e-6])
def test_a_tiny_top_p_keeps_the_most_probable_token(p: float) -> None:
    np.testing.assert_array_equal(law(Sampler(1.0, 0, p, 0.0), [1.0, 3.0, 2.0]), [0, 1, 0])


def test_a_small_temperature_stays_in_range() -> None:
    law = np.array(Sampler(1e-5, 0, 1.0, 0.0).log_law(mx.array([300.0, 299.0, -300.0])))
    assert law[0] == 0.0
    assert not np.isnan(law).any()
