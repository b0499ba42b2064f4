"""Caches of quantised keys and values: what they hold, and the bytes that they take."""

from pathlib import Path

from mtplx_engine.backend import mx

import numpy as np
import pytest
from mlx_lm.models.cache import ArraysCache, QuantizedKVCache

from mtplx_engine import KVFormat
from mtplx_engine.cache.rollback import roll_back
from mtplx_engine.decode.sequence import Prefill, SequenceState
from mtplx_engine.models.load import load
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.models.locate import Located
from mtplx_engine.runtime.memory_cost import SequenceCost
from mtplx_engine.runtime.resources import Resources

PROMPT = list(b"Repeat: one two three, one two three, one two")
CHUNK = 512
FORMATS = [KVFormat(8, 64), KVFormat(4, 64), KVFormat(4, 32), KVFormat(2, 32)]


@pytest.fixture(scope="module")
def model(wide_folder: Path) -> LoadedModel:
    located = Located(wide_folder, "tiny", "a test")
    return load(located, mtp="on", depth=None, on_progress=lambda _: None)


def read(
    model: LoadedModel, prompt: list[int], kv: KVFormat | None, *, chunk: int = CHUNK
) -> tuple[SequenceState, mx.array]:
    sequence = SequenceState(model, model.head, kv)
    prefill = Prefill(model, model.head, sequence, prompt, chunk=chunk)
    while (logits := prefill.step()) is None:
        pass
    mx.eval(logits, sequence.arrays())
    return sequence, logits


def state(sequence: SequenceState) -> list[np.ndarray]:
    arrays: list[mx.array] = []
    for cache in sequence.caches:
        if isinstance(cache, ArraysCache):
            arrays += cache.cache
        else:
            assert isinstance(cache, QuantizedKVCache)
            arrays += [part for side in cache.keys_and_values() for part in side]
    return [np.array(array) for array in arrays]


@pytest.mark.parametrize("kv", FORMATS, ids=str)
@pytest.mark.parametrize("keep", [1, 3, 4])
def test_rolling_back_equals_never_having_fed(model: LoadedModel, kv: KVFormat, keep: int) -> None:
    prompt, block, after = PROMPT, mx.array([[5, 6, 7, 8, 9]]), mx.array([[44]])
    rolled, _ = read(model, prompt, kv)
    recording = model.read(block, rolled.caches, recording=True).recording
    roll_back(rolled.caches, recording, fed=5, keep=keep)
    fresh, _ = read(model, prompt, kv)
    model.read(block[:, :keep], fresh.caches)
    for ours, theirs in zip(state(rolled), state(fresh), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    logits = [np.array(model.read(after, each.caches).logits) for each in (rolled, fresh)]
    np.testing.assert_array_equal(*logits)


@pytest.mark.parametrize("chunk", [1, 7, 44])
def test_a_prompt_read_in_chunks_is_the_same_prompt(model: LoadedModel, chunk: int) -> None:
    """Every position sees quantised keys only, wherever the chunks begin."""
    prompt, kv = PROMPT, KVFormat(4, 32)
    whole, logits = read(model, prompt, kv)
    parts, chunked = read(model, prompt, kv, chunk=chunk)
    np.testing.assert_array_equal(np.array(logits), np.array(chunked))
    for one, other in zip(state(whole), state(parts), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_fork_goes_on_alone(model: LoadedModel) -> None:
    kv, prompt, block = KVFormat(8, 64), PROMPT, mx.array([[1, 2, 3]])
    sequence, _ = read(model, prompt, kv)
    before = state(sequence)
    fork = sequence.fork()
    mx.eval(model.read(block, fork.caches).logits)
    for ours, theirs in zip(state(sequence), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    logits = [model.read(mx.array([[9]]), each.caches).logits for each in (sequence, fork)]
    assert not np.array_equal(*map(np.array, logits))


# What it takes


def held(sequence: SequenceState) -> int:
    return sum(array.nbytes for array in sequence.arrays())


@pytest.mark.parametrize("kv", FORMATS, ids=str)
@pytest.mark.parametrize("length", [255, 256, 300, 600])
def test_what_is_kept_is_what_the_caches_hold(
    model: LoadedModel, kv: KVFormat, length: int
) -> None:
    cost = SequenceCost.measure(model, chunk=CHUNK, kv=kv)
    sequence, _ = read(model, [7] * length, kv)
    assert cost.kept(length) == held(sequence)


@pytest.mark.parametrize("kv", FORMATS, ids=str)
def test_the_caches_are_as_much_smaller_as_the_format_says(
    model: LoadedModel, kv: KVFormat
) -> None:
    plain, small = model.make_cache(), model.make_cache(kv)
    for caches in (plain, small):
        mx.eval(model.model(mx.array([[7] * 40]), cache=caches))
    saved = 0
    for ours, theirs in zip(small, plain, strict=True):
        if isinstance(theirs, ArraysCache):
            assert type(ours) is ArraysCache
            assert ours.nbytes == theirs.nbytes
            continue
        numbers = (theirs.keys.size + theirs.values.size) // 8
        scales = 2 * theirs.keys.dtype.size * 8 // kv.group_size  # and as many offsets
        assert ours.nbytes == numbers * (kv.bits + scales)
        saved += theirs.nbytes - ours.nbytes
    assert saved > 0


@pytest.mark.parametrize("length", [64, 600, 2000])
def test_the_estimate_is_near_the_real_peak(model: LoadedModel, length: int) -> None:
    kv = KVFormat(4, 64)
    cost = SequenceCost.measure(model, chunk=CHUNK, kv=kv)
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    read(model, [7] * length, kv)
    peak = mx.get_peak_memory() - before
    assert 0.5 * peak < cost.estimate(length, 0).total < 3 * peak


def test_each_format_is_measured_once_and_costs_less(model: LoadedModel) -> None:
    shared = Resources.of(model, chunk=CHUNK)
    kept = [shared.cost(kv).kept(3000) for kv in (None, KVFormat(8, 64), KVFormat(4, 64))]
    assert kept == sorted(kept, reverse=True)
    assert len(set(kept)) == 3
    assert shared.cost(KVFormat(4, 64)) is shared.cost(KVFormat(4, 64))
