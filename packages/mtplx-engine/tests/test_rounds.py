"""After every round the caches are those of a fresh prefill of what was emitted."""

from pathlib import Path

from mtplx_engine.backend import mx

import numpy as np
import pytest
from mlx_lm.models.cache import KVCache

from mtplx_engine.cache.rollback import roll_back
from mtplx_engine.decode.experience import Experience
from mtplx_engine.decode.law import Law, Vocabulary
from mtplx_engine.decode.noise import Noise
from mtplx_engine.decode.planner import Planner
from mtplx_engine.decode.prefill import Prefill
from mtplx_engine.decode.rules import RuleName, make_rule
from mtplx_engine.decode.sampling import Sampler
from mtplx_engine.decode.sequence import SequenceState
from mtplx_engine.decode.speculative import Drafting, SpeculativeDecoder
from mtplx_engine.models.load import load
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.models.locate import Located

PROMPT = list(b"What is the capital of France?")


@pytest.fixture(scope="module")
def model(tiny_folder: Path) -> LoadedModel:
    located = Located(tiny_folder, "tiny", "a test", None)
    return load(located, mtp="on", depth=None, on_progress=lambda _: None)


def read(model: LoadedModel, tokens: list[int], chunk: int) -> tuple[SequenceState, mx.array]:
    sequence = SequenceState(model, model.head)
    prefill = Prefill(model, model.head, sequence, tokens, chunk=chunk)
    while (logits := prefill.step()) is None:
        pass
    return sequence, logits


def state(sequence: SequenceState) -> list[np.ndarray]:
    arrays = []
    for cache in sequence.caches:
        if isinstance(cache, KVCache):
            arrays += [cache.keys[..., : cache.offset, :], cache.values[..., : cache.offset, :]]
        else:
            arrays += list(cache.cache)
    return [np.array(array) for array in arrays]


def decoder(
    model: LoadedModel, sequence: SequenceState, rule: RuleName, seed: int, depth: int
) -> SpeculativeDecoder:
    assert model.head is not None
    sampler = Sampler(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
    vocabulary = Vocabulary(model.vocabulary, model.head.vocab)
    law = Law(sampler, Noise(seed), vocabulary)
    experience = Experience(model.info.max_depth)
    drafting = Drafting(Planner(experience, range(depth, depth + 1)), experience.costs)
    return SpeculativeDecoder(model, make_rule(rule, law), law, sequence, drafting)


@pytest.mark.parametrize("rule", ["greedy", "coupled", "rejection"])
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_caches_equal_a_fresh_prefill(model: LoadedModel, depth: int, rule: RuleName) -> None:
    sequence, logits = read(model, PROMPT, chunk=512)
    rounds = decoder(model, sequence, rule, seed=depth, depth=depth)
    tokens = [*PROMPT, *rounds.first(logits, more=True).tokens]
    seen = set()
    for _ in range(12):
        emitted = rounds.step(most=100).tokens
        tokens += emitted
        seen.add(len(emitted))
        fresh, _ = read(model, tokens[:-1], chunk=512)
        assert sequence.length == fresh.length == len(tokens) - 1
        for ours, theirs in zip(state(sequence), state(fresh), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        check_head(sequence, fresh, pending=len(emitted))
    assert len(seen) > 1, "every round accepted the same number, so this proves little"


def check_head(sequence: SequenceState, fresh: SequenceState, *, pending: int) -> None:
    """The head holds the pairs of all positions but the last round's, built from the trunk."""
    ours, theirs = sequence.head_cache[0], fresh.head_cache[0]
    assert ours.offset == sequence.length - pending
    for name in ("keys", "values"):
        mine, fresh_one = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_array_equal(
            np.array(mine[..., : ours.offset, :]), np.array(fresh_one[..., : ours.offset, :])
        )
    assert sequence.pending.hidden is not None
    assert fresh.pending.hidden is not None
    np.testing.assert_array_equal(
        np.array(sequence.pending.hidden[:, -1:]), np.array(fresh.pending.hidden)
    )


def test_the_comparison_can_fail(model: LoadedModel) -> None:
    one, _ = read(model, PROMPT, chunk=512)
    other, _ = read(model, [*PROMPT[:-1], 7], chunk=512)
    assert any((a != b).any() for a, b in zip(state(one), state(other), strict=True))


@pytest.mark.parametrize("chunk", [1, 2, 7, 29, 30, 31])
def test_a_prompt_read_in_chunks_is_the_same_prompt(model: LoadedModel, chunk: int) -> None:
    whole, logits = read(model, PROMPT, chunk=512)
    parts, chunked = read(model, PROMPT, chunk=chunk)
    np.testing.assert_array_equal(np.array(logits), np.array(chunked))
    for one, other in zip(state(whole), state(parts), strict=True):
        np.testing.assert_array_equal(one, other)
    assert whole.head_cache[0].offset == parts.head_cache[0].offset == len(PROMPT) - 1


@pytest.mark.parametrize("keep", [1, 2, 3, 4])
def test_rolling_back_equals_never_having_fed(model: LoadedModel, keep: int) -> None:
    block = mx.array([[5, 6, 7, 8, 9]])
    rolled, _ = read(model, PROMPT, chunk=512)
    recording = model.read(block, rolled.caches, recording=True).recording
    roll_back(rolled.caches, recording, fed=5, keep=keep)
    fresh, _ = read(model, PROMPT, chunk=512)
    model.read(block[:, :keep], fresh.caches)
    for ours, theirs in zip(state(rolled), state(fresh), strict=True):
        np.testing.assert_array_equal(ours, theirs)
