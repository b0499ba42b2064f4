"""What a request costs is measured right, and what does not fit is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mtplx_engine.backend import mx

import pytest
from mlx_lm.models.cache import CacheList, ChunkedKVCache, KVCache, RotatingKVCache

from mtplx_engine.decode.sequence import Prefill, SequenceState
from mtplx_engine.errors import EngineError, InsufficientMemory
from mtplx_engine.models.load import load
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.models.locate import Located
from mtplx_engine.runtime.memory import PeakMeter
from mtplx_engine.runtime.memory_cost import Estimate, SequenceCost, check
from mtplx_engine.runtime.memory_probe import Measured, measure

CHUNK = 512


@pytest.fixture(scope="module")
def model(tiny_folder: Path) -> LoadedModel:
    located = Located(tiny_folder, "tiny", "a test")
    return load(located, mtp="on", depth=None, on_progress=lambda _: None)


@pytest.fixture(scope="module")
def cost(model: LoadedModel) -> SequenceCost:
    return SequenceCost.measure(model, chunk=CHUNK)


def read(model: LoadedModel, tokens: int, *, chunk: int) -> tuple[SequenceState, int]:
    """A sequence that has read so many tokens, and the most memory that it took meanwhile."""
    sequence = SequenceState(model, model.head)
    prefill = Prefill(model, model.head, sequence, [7] * tokens, chunk=chunk)
    before, meter = mx.get_active_memory(), PeakMeter()
    logits = None
    while logits is None:
        with meter:
            logits = prefill.step()
            if logits is not None:
                mx.eval(logits, sequence.arrays())
    return sequence, meter.bytes - before


def held(sequence: SequenceState) -> int:
    return sum(array.nbytes for array in sequence.arrays())


@pytest.mark.parametrize("chunk", [CHUNK, 1000])
@pytest.mark.parametrize("tokens", [255, 256, 300, 600])
def test_what_is_kept_is_what_the_caches_hold(
    model: LoadedModel, cost: SequenceCost, tokens: int, chunk: int
) -> None:
    sequence, _ = read(model, tokens, chunk=chunk)
    assert cost.kept(tokens) == held(sequence)


def test_recurrent_models_have_a_constant_part(model: LoadedModel, cost: SequenceCost) -> None:
    assert (cost.measured.constant > 0) == (model.tape is not None)


@pytest.mark.parametrize("tokens", [64, 600, 2000])
def test_the_estimate_is_near_the_real_peak(
    model: LoadedModel, cost: SequenceCost, tokens: int
) -> None:
    _, peak = read(model, tokens, chunk=CHUNK)
    assert 0.5 * peak < cost.estimate(tokens, 0).total < 3 * peak


MEASURED = Measured(per_position=100, constant=7, per_row=10, per_pair=2)
COST = SequenceCost(MEASURED, chunk=50)


def test_the_parts_of_an_estimate() -> None:
    estimate = COST.estimate(200, 57)
    assert estimate == Estimate(200, 57, positions=512 * 100, constant=7, working=50 * 410)
    assert estimate.kept == 51_207
    assert estimate.total == 51_207 + 20_500
    assert COST.estimate(20, 0).working == 20 * 50


def test_several_answers_keep_several_copies() -> None:
    one, three = COST.estimate(200, 57), COST.estimate(200, 57, answers=3)
    assert (three.kept, three.working) == (3 * one.kept, one.working)
    assert three.answer_tokens == 171


def test_an_unset_max_tokens_does_not_demand_the_context_window() -> None:
    assert COST.estimate(200, 10**6) == COST.estimate(200, 2000)


def test_windows_count_in_full_and_compound_caches_by_their_parts() -> None:
    caches = CacheList(RotatingKVCache(1000), ChunkedKVCache(100), KVCache()), KVCache()
    block = mx.zeros((1, 2, 16, 4), mx.float16)

    def read_block(tokens: mx.array, cache: list[Any]) -> SimpleNamespace:
        for layer in cache[0].caches:  # the last cache stays empty: its layer borrows another's
            layer.update_and_fetch(block, block)
        return SimpleNamespace(logits=mx.zeros((tokens.shape[1], 5)))

    model: Any = SimpleNamespace(
        head=None, parts=None, make_cache=lambda kv: list(caches), read=read_block
    )
    measured = measure(model)
    each = 2 * 2 * 4 * 2
    assert (measured.per_position, measured.constant) == (each, 1100 * each)


def test_what_does_not_fit_is_refused_with_numbers() -> None:
    estimate = Estimate(12_000, 1024, positions=2 * 10**9, constant=5 * 10**8, working=10**9)
    check(estimate, None)
    check(estimate, 3_500_000_000)
    with pytest.raises(InsufficientMemory) as caught:
        check(estimate, 900_000_000)
    message = str(caught.value)
    for part in ("12000", "1024", "3.50 GB", "900.0 MB", "Shorten", "max_tokens", "close other"):
        assert part in message
    assert (caught.value.needed, caught.value.available) == (3_500_000_000, 900_000_000)
    assert isinstance(caught.value, EngineError)
