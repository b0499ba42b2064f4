"""Quantised keys and values: what is decoded, when they are, what is refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mtplx_engine.backend import mx

import pytest
from mlx.utils import tree_map
from mlx_lm.models.base import scaled_dot_product_attention
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache

from mtplx_engine import (
    ChatRequest,
    ChatResult,
    Engine,
    EngineOptions,
    InvalidRequest,
    KVFormat,
    KVQuant,
    Limits,
    ModelError,
    RawText,
    Sampling,
)
from mtplx_engine.models.load import load
from mtplx_engine.models.locate import Located
from mtplx_engine.models.quantisable import quantisable
from mtplx_engine.runtime import worker
from mtplx_engine.runtime.resources import Resources

PROMPT = "Repeat: one two three, one two three, one two"


@pytest.fixture(scope="module")
def engine(wide_folder: Path) -> Iterator[Engine]:
    with Engine.open(EngineOptions(model=str(wide_folder), mtp="on")) as engine:
        yield engine


def asked(kv: KVQuant | None, depth: int | None = None, **more: Any) -> ChatRequest:
    sampling = Sampling(temperature=more.pop("temperature", 1.0), seed=more.pop("seed", 7))
    limits = Limits(more.pop("max_tokens", 40), ignore_eos=True)
    return ChatRequest(RawText(PROMPT), sampling, limits, depth, kv=kv, **more)


def answer(engine: Engine, kv: KVQuant | None, depth: int | None = None, **more: Any) -> ChatResult:
    return engine.submit(asked(kv, depth, **more)).result()


def tokens(result: ChatResult) -> list[int]:
    return [score.chosen.token for score in result.scores]


# What is decoded


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_a_seeded_answer_does_not_depend_on_drafts(
    engine: Engine, bits: int, temperature: float
) -> None:
    kv = KVQuant(bits)
    same = {"temperature": temperature, "logprobs": 2}
    plain = answer(engine, kv, 0, copy_lane=False, **same)
    accepted = rejected = 0
    for depth in (1, 2, 3, 5, 8, None):
        for copy in (False, True):
            drafted = answer(engine, kv, depth, copy_lane=copy, **same)
            assert tokens(drafted) == tokens(plain), (depth, copy)
            assert drafted.finished.kv == plain.finished.kv == KVFormat(bits, 64)
            for ours, theirs in zip(drafted.scores, plain.scores, strict=True):
                assert ours.chosen.logprob == pytest.approx(theirs.chosen.logprob, abs=1e-5)
            how = drafted.finished.speculation
            accepted += sum(how.accepted)
            rejected += sum(how.drafted) - sum(how.accepted)
    assert accepted > 0
    assert rejected > 0, "nothing was ever rolled back, so this proves little"


def test_quantising_is_seen_in_the_law(engine: Engine) -> None:
    """Few bits change the model's law, more of them change it less."""
    exact = answer(engine, None, 0, logprobs=0, prompt_logprobs=0)
    distances = []
    for bits in (8, 4, 2):
        coarse = answer(engine, KVQuant(bits), 0, logprobs=0, prompt_logprobs=0)
        pairs = zip(exact.prompt_scores, coarse.prompt_scores, strict=True)
        distances.append(sum(abs(a.chosen.logprob - b.chosen.logprob) for a, b in pairs))
    assert 0 < distances[0] < distances[1] < distances[2]


def test_several_answers_share_a_prompt_and_then_go_their_own_ways(engine: Engine) -> None:
    request = asked(KVQuant(4), 2, logprobs=0)
    three = [each.result() for each in engine.submit_choices(request, 3)]
    again = [each.result() for each in engine.submit_choices(request, 3)]
    assert [tokens(each) for each in three] == [tokens(each) for each in again]
    assert len({tuple(tokens(each)) for each in three}) == 3
    assert tokens(three[0]) == tokens(engine.submit(request).result())


# When


LENGTH = len(PROMPT)  # in tokens too: one a byte


@pytest.mark.parametrize(
    ("start", "quantised"),
    [(None, True), (-3, True), (0, True), (1, True), (LENGTH, True), (LENGTH + 1, False)],
)
def test_the_length_of_the_prompt_decides(
    engine: Engine, start: int | None, *, quantised: bool
) -> None:
    result = answer(engine, KVQuant(8, 32, start), max_tokens=1)
    assert result.finished.usage.prompt_tokens == LENGTH
    assert result.finished.kv == (KVFormat(8, 32) if quantised else None)


def test_a_prompt_that_is_too_short_gets_the_exact_answer(engine: Engine) -> None:
    late = answer(engine, KVQuant(2, start=LENGTH + 1), logprobs=0)
    assert late.scores == answer(engine, None, logprobs=0).scores


def test_formats_of_requests_do_not_meet(engine: Engine) -> None:
    """Requests that take turns keep their own formats."""
    asks = [KVQuant(bits) if bits else None for bits in (0, 2, 8, 4)]
    alone = [tokens(answer(engine, kv, 2, logprobs=0)) for kv in asks]
    together = [engine.submit(asked(kv, 2, logprobs=0)) for kv in asks]
    assert [tokens(each.result()) for each in together] == alone


@pytest.mark.parametrize("bits", [0, -1])
def test_zero_and_less_is_off(wide_folder: Path, bits: int) -> None:
    options = EngineOptions(model=str(wide_folder), kv_quant="q4")
    with Engine.open(options) as engine:
        assert answer(engine, KVQuant(bits, 32, 1), max_tokens=1).finished.kv is None
        assert answer(engine, None, max_tokens=1).finished.kv == KVFormat(4, 64)
        assert answer(engine, KVQuant(8), max_tokens=1).finished.kv == KVFormat(8, 64)
        assert answer(engine, KVQuant(None, 32), max_tokens=1).finished.kv == KVFormat(4, 32)
        late = KVQuant(start=LENGTH + 1)
        assert answer(engine, late, max_tokens=1).finished.kv is None
        scored = answer(engine, None, max_tokens=0, prompt_logprobs=0)
        assert scored.finished.kv == KVFormat(4, 64)


def test_without_a_word_nothing_is_quantised(engine: Engine) -> None:
    assert answer(engine, None, max_tokens=1).finished.kv is None
    assert answer(engine, KVQuant(None, 32, 0), max_tokens=1).finished.kv is None


# What is refused


@pytest.mark.parametrize("bits", [1, 3, 5, 6, 16, 10**30])
def test_bits_that_there_are_not(bits: int) -> None:
    with pytest.raises(InvalidRequest, match=f"kv_bits must be 8, 4 or 2.*{bits}") as caught:
        KVQuant(bits)
    assert caught.value.param == "kv_bits"


@pytest.mark.parametrize("size", [-32, 0, 16, 48, 256])
def test_groups_that_there_are_not(size: int) -> None:
    with pytest.raises(InvalidRequest, match=f"kv_group_size must be.*{size}") as caught:
        KVQuant(8, size)
    assert caught.value.param == "kv_group_size"


def test_groups_that_do_not_fit_the_model(engine: Engine) -> None:
    assert engine.model.kv_groups == (64, 32)
    with pytest.raises(InvalidRequest, match=r"kv_group_size 128 .* use 32, 64") as caught:
        answer(engine, KVQuant(8, 128))
    assert caught.value.param == "kv_group_size"


@pytest.mark.parametrize("start", [0, 10**6])
def test_a_model_with_narrow_heads_refuses(qwen_engine: Engine, start: int) -> None:
    """However short the prompt: what may be asked does not depend on it."""
    assert qwen_engine.model.kv_groups == ()
    with pytest.raises(InvalidRequest, match=r"kv_bits 8 .*16 wide") as caught:
        answer(qwen_engine, KVQuant(8, start=start))
    assert caught.value.param == "kv_bits"
    assert answer(qwen_engine, KVQuant(0, 128), max_tokens=1).finished.kv is None


def test_an_engine_that_is_to_quantise_does_not_start_with_such_a_model(qwen_folder: Path) -> None:
    with pytest.raises(ModelError, match=r"kv_quant q8 is not possible .*16 wide"):
        Engine.open(EngineOptions(model=str(qwen_folder), kv_quant="q8"))


class Attention:
    """A model of one layer: attention over keys that are given to it."""

    layers: tuple[None] = (None,)

    def __init__(self, cache: Any, attend: Callable[[Any, Any], Any]) -> None:
        self._cache = cache
        self._attend = attend

    def make_cache(self) -> list[Any]:
        return [self._cache()]

    def __call__(self, read: mx.array, cache: list[Any]) -> mx.array:
        keys = mx.zeros((1, 1, read.shape[1], 64))
        layer = cache[0].caches[0] if isinstance(cache[0], CacheList) else cache[0]
        if isinstance(layer, ArraysCache):
            return keys
        return self._attend(layer, layer.update_and_fetch(keys, keys))


def sum_of(_: Any, fetched: Any) -> Any:
    return tree_map(mx.sum, fetched)


def with_sinks(cache: Any, fetched: Any) -> Any:
    queries = mx.zeros((1, 1, 1, 64))
    return scaled_dot_product_attention(
        queries, *fetched, cache=cache, scale=1.0, mask=None, sinks=mx.zeros(1)
    )


def of_a_latent(_: Any, fetched: Any) -> Any:
    return fetched[0].swapaxes(-1, -2)


@pytest.mark.parametrize(
    ("cache", "attend", "obstacle"),
    [
        (KVCache, sum_of, ""),
        (KVCache, with_sinks, "sinks"),
        (KVCache, of_a_latent, "swapaxes"),
        (lambda: CacheList(KVCache()), sum_of, "CacheList"),
        (lambda: ArraysCache(1), sum_of, "grows"),
    ],
)
def test_why_a_model_cannot(cache: Any, attend: Any, obstacle: str) -> None:
    outcome = quantisable(Attention(cache, attend))
    assert outcome.groups == (() if obstacle else (64, 32))
    assert obstacle in outcome.obstacle
    assert bool(outcome.obstacle) == bool(obstacle)


def test_no_room_for_what_is_quantised_is_told_with_its_numbers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, wide_folder: Path
) -> None:
    """The estimate is of the request's format: one format fits where another does not."""
    located = Located(wide_folder, "tiny", "a test")
    model = load(located, mtp="on", depth=None, on_progress=lambda _: None)
    shared = Resources.of(model, chunk=512)
    needs = [shared.cost(kv).estimate(LENGTH, 1).kept for kv in (None, KVFormat(2, 64))]
    between = sum(needs) // 2

    def refuse(estimate: Any, _: Any) -> None:
        if estimate.kept > between:
            raise InvalidRequest("no room", "max_tokens")

    monkeypatch.setattr(worker, "check", refuse)
    assert answer(engine, KVQuant(2), max_tokens=1).finished.kv == KVFormat(2, 64)
    with pytest.raises(InvalidRequest, match="no room"):
        answer(engine, None, max_tokens=1)
