"""Reading in chunks equals mlx-lm's loop over the tokens, and happens where it should only."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mtplx_engine.backend import mx, nn

import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.models.gated_delta import gated_delta_ops

from mtplx_engine.cache.rollback import roll_back
from mtplx_engine.cache.tape import Tape
from mtplx_engine.decode.planner import MOST_DRAFTS
from mtplx_engine.families import gated_delta, qwen3_5, qwen3_next
from mtplx_engine.families.base import Family, TrunkParts
from mtplx_engine.families.gated_delta import MOST_LOOPED, chunked_gated_delta, use_chunked
from mtplx_engine.models.load import load
from mtplx_engine.models.locate import Located
from mtplx_engine.models.trunk import load_trunk
from mtplx_engine.tiny import TinyFamily, write_tiny_model

NOISE = 1e-5
FAMILIES: dict[TinyFamily, Family] = {"qwen3_5": qwen3_5.FAMILY, "qwen3_next": qwen3_next.FAMILY}

Inputs = list[mx.array]
Gate = Callable[[mx.array], mx.array]

# What a draw from 0 to 1 becomes as a decay.
GATES: dict[str, Gate] = {
    "slow": lambda u: mx.exp(-0.05 * u),
    "usual": lambda u: mx.exp(-mx.exp(10 * u - 7)),
    "fast": lambda u: mx.exp(-40 * u),
    "abrupt": lambda u: mx.where(u < 0.2, 1e-30, 0.9999),
    "near 0": lambda u: 1e-38 * u,
    "0": mx.zeros_like,
    "0 or 1": lambda u: (u < 0.9).astype(mx.float32),
    "1": mx.ones_like,
}
BETAS: dict[str, Gate] = {
    "any": lambda u: mx.sigmoid(8 * u - 4),
    "near 1": lambda u: 1 - 1e-4 * u,
    "1": mx.ones_like,
    "0 or 1": lambda u: (u < 0.5).astype(mx.float32),
}


def draw(
    length: int,
    *,
    batch: int = 1,
    heads: tuple[int, int] = (2, 4),
    dims: tuple[int, int] = (16, 16),
    gate: Gate = GATES["usual"],
    beta: Gate = BETAS["any"],
    alike: float = 0.0,
    seed: int = 0,
) -> Inputs:
    """Inputs as a layer makes them; `alike`, from 0 to 1, is how much keys resemble each other."""
    mx.random.seed(seed)
    (k_heads, v_heads), (k_dim, v_dim) = heads, dims
    q = mx.random.normal((batch, length, k_heads, k_dim))
    k = mx.random.normal((batch, length, k_heads, k_dim))
    k = alike * mx.random.normal((batch, 1, k_heads, k_dim)) + (1 - alike) * k
    return [
        k_dim**-0.5 * q / mx.linalg.norm(q, axis=-1, keepdims=True),
        k / mx.linalg.norm(k, axis=-1, keepdims=True),
        mx.random.normal((batch, length, v_heads, v_dim)),
        gate(mx.random.uniform(shape=(batch, length, v_heads))),
        beta(mx.random.uniform(shape=(batch, length, v_heads))),
        0.3 * mx.random.normal((batch, v_heads, v_dim, k_dim)),
    ]


def assert_same(ours: mx.array, theirs: mx.array, heads: int, noise: float = NOISE) -> None:
    """Within `noise` of the largest number of the same head of the same sequence."""
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    mine, others = (np.array(x.astype(mx.float32), dtype=np.float64) for x in (ours, theirs))
    assert np.isfinite(mine).all()
    axes = tuple(axis for axis in range(1, mine.ndim) if axis != heads)
    # Denormal numbers, which fast decays end in, have fewer digits.
    scale = np.maximum(np.abs(others).max(axis=axes, keepdims=True), 1e-30)
    assert (np.abs(mine - others) <= noise * scale).all(), np.max(np.abs(mine - others) / scale)


def check(inputs: Inputs, *, noise: float = NOISE, **options: Any) -> None:
    """Compare outputs and states with mlx-lm's loop."""
    y, state = chunked_gated_delta(*inputs, **options)
    expected, expected_state = gated_delta_ops(*inputs)
    assert_same(y, expected, heads=2, noise=noise)
    assert_same(state, expected_state, heads=1, noise=noise)


@pytest.mark.parametrize("length", [1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 130])
@pytest.mark.parametrize("chunk", [1, 5, 16, 32, 64])
def test_any_length_in_any_chunks(length: int, chunk: int) -> None:
    check(draw(length, seed=length), chunk=chunk)


@pytest.mark.parametrize("heads", [(1, 1), (2, 2), (2, 4), (1, 4), (2, 6), (3, 3)])
@pytest.mark.parametrize("dims", [(8, 8), (16, 24), (32, 8), (128, 128)])
@pytest.mark.parametrize("batch", [1, 2])
def test_any_shape(heads: tuple[int, int], dims: tuple[int, int], batch: int) -> None:
    check(draw(70, batch=batch, heads=heads, dims=dims))


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("alike", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("chunk", [32, 64])
def test_any_gates_and_keys(gate: str, beta: str, alike: float, chunk: int) -> None:
    check(draw(100, gate=GATES[gate], beta=BETAS[beta], alike=alike), chunk=chunk)


@pytest.mark.parametrize("seed", range(20))
def test_a_split_at_any_place_carries_the_state(seed: int) -> None:
    inputs = draw(90, gate=GATES["slow"], seed=seed)
    *sequences, state = inputs
    cut = int(np.random.default_rng(seed).integers(1, 90))
    first, state = chunked_gated_delta(*(x[:, :cut] for x in sequences), state)
    second, state = chunked_gated_delta(*(x[:, cut:] for x in sequences), state)
    expected, expected_state = gated_delta_ops(*inputs)
    assert_same(mx.concatenate([first, second], axis=1), expected, heads=2)
    assert_same(state, expected_state, heads=1)


def test_no_state_is_a_state_of_zeros() -> None:
    *sequences, state = draw(50)
    for mine, theirs in zip(
        chunked_gated_delta(*sequences),
        gated_delta_ops(*sequences, mx.zeros_like(state)),
        strict=True,
    ):
        np.testing.assert_allclose(np.array(mine), np.array(theirs), atol=1e-6)


def test_half_precision_goes_in_and_out_but_not_between() -> None:
    *sequences, state = draw(80)
    halves = [x.astype(mx.bfloat16) for x in sequences]
    y, after = chunked_gated_delta(*halves, state)
    expected, expected_state = gated_delta_ops(*halves, state)
    assert_same(y, expected, heads=2, noise=2**-8)
    assert_same(after, expected_state, heads=1)


@pytest.mark.parametrize("which", range(6), ids=["q", "k", "v", "g", "beta", "state"])
def test_the_comparison_notices_every_input(which: int) -> None:
    inputs = draw(40, gate=GATES["slow"])
    others = [x if i != which else x * 0.999 for i, x in enumerate(inputs)]
    y, _ = chunked_gated_delta(*others)
    with pytest.raises(AssertionError):
        assert_same(y, gated_delta_ops(*inputs)[0], heads=2)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> TinyFamily:
    name: TinyFamily = request.param
    return name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, family: TinyFamily) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("gated") / family, family)


@pytest.fixture(autouse=True)
def slow_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading as with MLX's own BLAS, whatever the tests run with: layers are as mlx-lm's."""
    monkeypatch.setattr(gated_delta, "BLAS", "MLX's own BLAS")


@pytest.fixture
def fast_blas(slow_blas: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading as with OpenBLAS."""
    monkeypatch.setattr(gated_delta, "BLAS", "OpenBLAS")


@pytest.fixture
def chunked_lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths that were read in chunks."""
    lengths = []

    def counted(q: mx.array, *others: Any) -> tuple[mx.array, mx.array]:
        lengths.append(q.shape[1])
        return chunked_gated_delta(q, *others)

    monkeypatch.setattr(gated_delta, "chunked_gated_delta", counted)
    return lengths


def take_apart(folder: Path, family: TinyFamily) -> TrunkParts:
    """A model whose recurrent layers remember; those of a tiny model forget within a token."""
    parts = FAMILIES[family].parts(load_trunk(folder).model)
    for layer in parts.recurrent.values():
        layer.A_log = mx.log(mx.linspace(0.002, 0.2, layer.num_v_heads))
    return parts


def read(parts: TrunkParts, tokens: mx.array, caches: list[Any]) -> mx.array:
    return parts.unembed(parts.body(tokens, caches))


def some_tokens(length: int, batch: int = 1) -> mx.array:
    mx.random.seed(length)
    return mx.random.randint(0, 256, (batch, length))


def make_caches(folder: Path) -> list[Any]:
    return make_prompt_cache(load_trunk(folder).model)


@pytest.mark.parametrize("splits", [[150], [64, 86], [33, 1, 90, 26]])
def test_a_model_reads_the_same(
    folder: Path, family: TinyFamily, splits: list[int], chunked_lengths: list[int]
) -> None:
    stock, ours = take_apart(folder, family), take_apart(folder, family)
    for layer in ours.recurrent.values():
        use_chunked(layer)
    logits: list[list[mx.array]] = [[], []]
    caches = [make_caches(folder), make_caches(folder)]
    for part in mx.split(some_tokens(sum(splits)), np.cumsum(splits)[:-1].tolist(), axis=1):
        for side, parts in enumerate((stock, ours)):
            logits[side].append(read(parts, part, caches[side]))
    theirs, mine = (mx.concatenate(side, axis=1) for side in logits)
    assert_same(mine, theirs, heads=1)
    for index in ours.recurrent:
        assert_same(caches[1][index][1], caches[0][index][1], heads=1)
    assert chunked_lengths == [n for n in splits if n > MOST_LOOPED for _ in ours.recurrent]


def first_layers(folder: Path, family: TinyFamily) -> tuple[nn.Module, nn.Module]:
    """The first recurrent layer, stock and reading in chunks."""
    stock, ours = (take_apart(folder, family).recurrent[0] for _ in range(2))
    use_chunked(ours)
    return stock, ours


@pytest.mark.parametrize("length", [1, 2, 9, MOST_DRAFTS + 1, MOST_LOOPED])
def test_short_passes_are_mlx_lms_bit_for_bit(
    folder: Path, family: TinyFamily, length: int, chunked_lengths: list[int]
) -> None:
    stock, ours = first_layers(folder, family)
    x = mx.random.normal((1, length, 64))
    np.testing.assert_array_equal(np.array(ours(x)), np.array(stock(x)))
    assert not chunked_lengths


def test_no_verify_pass_is_read_in_chunks() -> None:
    deepest = max(family.max_depth for family in FAMILIES.values())
    assert deepest <= MOST_DRAFTS
    assert MOST_DRAFTS + 1 <= MOST_LOOPED


def test_chunks_are_asked_for_before_the_tape(folder: Path, family: TinyFamily) -> None:
    parts = take_apart(folder, family)
    Tape(parts.recurrent)
    for layer in parts.recurrent.values():
        with pytest.raises(AssertionError, match="replaced before"):
            use_chunked(layer)


def test_padding_is_left_to_mlx_lm(
    folder: Path, family: TinyFamily, chunked_lengths: list[int]
) -> None:
    stock, ours = first_layers(folder, family)
    x = mx.random.normal((2, 40, 64))
    mask = mx.arange(40) < mx.array([[40], [30]])
    np.testing.assert_array_equal(np.array(ours(x, mask)), np.array(stock(x, mask)))
    assert not chunked_lengths


def test_training_is_left_to_mlx_lm(
    folder: Path, family: TinyFamily, chunked_lengths: list[int]
) -> None:
    _, ours = first_layers(folder, family)
    ours.train()
    mx.eval(ours(mx.random.normal((1, 40, 64))))
    assert not chunked_lengths


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_a_verify_pass_is_rolled_back_to_the_bit(
    folder: Path, family: TinyFamily, keep: int
) -> None:
    parts = take_apart(folder, family)
    for layer in parts.recurrent.values():
        use_chunked(layer)
    tape = Tape(parts.recurrent)
    rolled, fresh = make_caches(folder), make_caches(folder)
    prompt, block, after = some_tokens(70), some_tokens(5), some_tokens(3)
    for caches in (rolled, fresh):
        parts.body(prompt, caches)
    with tape.recording() as recording:
        parts.body(block, rolled)
    roll_back(rolled, recording, fed=5, keep=keep)
    parts.body(block[:, :keep], fresh)
    for index in parts.recurrent:
        for mine, theirs in zip(rolled[index].cache, fresh[index].cache, strict=True):
            np.testing.assert_array_equal(np.array(mine), np.array(theirs))
    np.testing.assert_array_equal(
        np.array(parts.body(after, rolled)), np.array(parts.body(after, fresh))
    )


@pytest.mark.usefixtures("fast_blas")
def test_a_prompt_is_read_the_same_with_and_without_a_head(
    folder: Path, chunked_lengths: list[int]
) -> None:
    located = Located(folder, "tiny", "a test", None)
    logits = []
    for mtp in ("on", "off"):
        model = load(located, mtp=mtp, depth=None, on_progress=lambda _: None)
        chunked_lengths.clear()
        logits.append(np.array(model.model(some_tokens(60), cache=model.make_cache())))
        assert chunked_lengths == [60] * 3
    np.testing.assert_array_equal(*logits)


def test_where_chunks_do_not_pay_mlx_lm_reads(folder: Path, chunked_lengths: list[int]) -> None:
    mx.eval(load_trunk(folder).model(some_tokens(60)))
    assert not chunked_lengths


@pytest.mark.usefixtures("fast_blas")
def test_not_on_a_gpu(
    folder: Path, monkeypatch: pytest.MonkeyPatch, chunked_lengths: list[int]
) -> None:
    monkeypatch.setattr(gated_delta, "on_cpu", lambda: False)
    mx.eval(load_trunk(folder).model(some_tokens(60)))
    assert not chunked_lengths
