"""Measured end to end: what the engine emits with MTP has the law of plain decoding."""

from collections import Counter
from pathlib import Path

from mtplx_engine.backend import mx

import numpy as np
import pytest
from scipy import stats

from mtplx_engine import ChatRequest, Engine, Limits, Sampling, TokenIds
from mtplx_engine.decode.sampling import Sampler
from mtplx_engine.models.trunk import load_trunk

PROMPT = (104, 105)
LENGTH = 3
TOP_K = 4
RUNS = 1500
CHANCE = 1e-4  # of a false alarm; one retry with fresh randomness squares it

Counts = Counter[str]


def sample(engine: Engine, depth: int) -> Counts:
    request = ChatRequest(
        TokenIds(PROMPT), Sampling(temperature=1.0, top_k=TOP_K), Limits(max_tokens=LENGTH), depth
    )
    return Counter(engine.submit(request).result().text for _ in range(RUNS))


def two_sample_p(a: Counts, b: Counts) -> float:
    """Chi-square over the cells that both arms may fall into; rare ones are pooled."""
    cells = a.keys() | b.keys()
    common = [cell for cell in cells if a[cell] + b[cell] >= 10]
    rows = [[arm[cell] for cell in common] for arm in (a, b)]
    for row in rows:
        row.append(RUNS - sum(row))
    table = np.array(rows)
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_unseeded_mtp_against_plain(qwen_engine: Engine, depth: int) -> None:
    def p() -> float:
        return two_sample_p(sample(qwen_engine, 0), sample(qwen_engine, depth))

    assert p() > CHANCE or p() > CHANCE


def exact_law(folder: Path) -> dict[tuple[int, ...], float]:
    """The law of the first tokens, by running the trunk over every continuation."""
    model = load_trunk(folder).model
    sampler = Sampler(1.0, TOP_K, 1.0, 0.0)
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(LENGTH):
        longer: dict[tuple[int, ...], float] = {}
        for prefix, weight in law.items():
            logits = model(mx.array([[*PROMPT, *prefix]]))[0, -1]
            p = np.array(mx.exp(sampler.log_law(logits)), dtype=np.float64)
            for token in np.flatnonzero(p):
                longer[*prefix, int(token)] = weight * p[token] / p.sum()
        law = longer
    return law


def text_law(engine: Engine, folder: Path) -> dict[str, float]:
    tokenizer = load_trunk(folder).tokenizer
    law: dict[str, float] = {}
    for tokens, weight in exact_law(folder).items():
        ended = next((i for i, t in enumerate(tokens) if t in tokenizer.eos_token_ids), len(tokens))
        text = tokenizer.decode(list(tokens[:ended]), skip_special_tokens=True)
        law[text] = law.get(text, 0.0) + weight
    return law


@pytest.mark.parametrize("depth", [0, 2])
def test_against_the_enumerated_law(qwen_engine: Engine, qwen_folder: Path, depth: int) -> None:
    law = text_law(qwen_engine, qwen_folder)

    def p() -> float:
        counts = sample(qwen_engine, depth)
        assert counts.keys() <= law.keys()
        common = [text for text, weight in law.items() if weight * RUNS >= 5]
        observed = [counts[text] for text in common]
        expected = [law[text] * RUNS for text in common]
        observed.append(RUNS - sum(observed))
        expected.append(RUNS - sum(expected))
        return float(stats.chisquare(observed, expected).pvalue)

    assert p() > CHANCE or p() > CHANCE


def test_the_comparison_can_fail() -> None:
    a = Counter({"x": RUNS // 2, "y": RUNS - RUNS // 2})
    b = Counter({"x": int(RUNS * 0.6), "y": RUNS - int(RUNS * 0.6)})
    assert two_sample_p(a, b) < CHANCE
