"""Heads in every place and form they are found in, and what happens when one does not fit."""

import json
from pathlib import Path

from mtplx_engine.backend import mx, nn

import numpy as np
import pytest
from mlx.utils import tree_flatten

from mtplx_engine import ModelError, ModelInvalid
from mtplx_engine.families.experts import stack_experts
from mtplx_engine.families.head import unembed_rows
from mtplx_engine.families.norms import likely_shift, shift_norms
from mtplx_engine.models.attach import MTPChoice
from mtplx_engine.models.load import load
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.models.locate import Located
from mtplx_engine.tiny import TinyFamily, write_tiny_model

Weights = dict[str, mx.array]
NORMS = (
    "layernorm.weight",
    "_norm.weight",
    "model.norm.weight",
    "mtp.norm.weight",
    "pre_fc_norm_embedding.weight",
    "pre_fc_norm_hidden.weight",
)


def open_folder(folder: Path, mtp: MTPChoice = "auto", head: Path | None = None) -> LoadedModel:
    located = Located(folder, folder.name, "a test", head)
    return load(located, mtp=mtp, depth=None, on_progress=lambda _: None)


def read(folder: Path) -> Weights:
    weights: Weights = dict(mx.load(str(folder / "model.safetensors")))  # type: ignore[arg-type]
    mx.eval(list(weights.values()))
    return weights


def write(folder: Path, weights: Weights, name: str = "model.safetensors") -> None:
    mx.save_safetensors(str(folder / name), weights, metadata={"format": "mlx"})


def split_head(weights: Weights) -> tuple[Weights, Weights]:
    head = {name: value for name, value in weights.items() if name.startswith("mtp.")}
    return {name: value for name, value in weights.items() if name not in head}, head


def head_parameters(model: LoadedModel) -> dict[str, np.ndarray]:
    assert model.head is not None
    return {name: np.array(v) for name, v in tree_flatten(model.head.module.parameters())}


def assert_same_head(model: LoadedModel, reference: LoadedModel) -> None:
    ours, theirs = head_parameters(model), head_parameters(reference)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.fixture
def folder(tmp_path: Path, family: TinyFamily) -> Path:
    return write_tiny_model(tmp_path / family, family)


@pytest.fixture
def qwen(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "qwen")


def test_a_head_in_the_shards(folder: Path) -> None:
    model = open_folder(folder)
    assert model.info.mtp
    assert model.info.default_depth >= 1
    assert "own shards" in model.info.mtp_reason


@pytest.mark.parametrize("prefix", ["mtp.", "language_model.mtp.", ""])
@pytest.mark.parametrize("name", ["mtp.safetensors", "mtp/weights.safetensors"])
def test_a_head_in_a_sidecar(folder: Path, name: str, prefix: str) -> None:
    reference = open_folder(folder)
    trunk, head = split_head(read(folder))
    write(folder, trunk)
    (folder / "mtp").mkdir()
    write(folder, {prefix + key.removeprefix("mtp."): v for key, v in head.items()}, name)
    model = open_folder(folder)
    assert "sidecar" in model.info.mtp_reason
    assert_same_head(model, reference)


@pytest.mark.parametrize("prefix", ["language_model.mtp.", "model.mtp."])
def test_a_head_in_the_shards_under_other_names(qwen: Path, prefix: str) -> None:
    reference = open_folder(qwen)
    trunk, head = split_head(read(qwen))
    write(qwen, trunk | {prefix + key.removeprefix("mtp."): v for key, v in head.items()})
    assert_same_head(open_folder(qwen), reference)


def test_a_head_outside_the_folder(folder: Path, tmp_path: Path) -> None:
    reference = open_folder(folder)
    trunk, head = split_head(read(folder))
    write(folder, trunk)
    write(tmp_path, head, "elsewhere.safetensors")
    assert_same_head(open_folder(folder, head=tmp_path / "elsewhere.safetensors"), reference)


def test_no_head_decodes_plainly_and_says_so(folder: Path) -> None:
    write(folder, split_head(read(folder))[0])
    model = open_folder(folder)
    assert model.head is None
    assert model.info.mtp_reason == "off, because the model has no MTP head"
    assert model.info.max_depth == 0
    with pytest.raises(
        ModelError, match="MTP was asked for but is not possible: the model has no MTP head"
    ):
        open_folder(folder, mtp="on")


def test_off_is_off(folder: Path) -> None:
    assert open_folder(folder, mtp="off").head is None


def test_a_missing_tensor_of_the_head_is_named(folder: Path) -> None:
    weights = read(folder)
    del weights["mtp.layers.0.self_attn.k_proj.weight"]
    write(folder, weights)
    with pytest.raises(ModelInvalid, match=r"missing layers\.0\.self_attn\.k_proj\.weight"):
        open_folder(folder)


def test_an_extra_tensor_of_the_head_is_named(folder: Path) -> None:
    write(folder, read(folder) | {"mtp.layers.7.extra.weight": mx.zeros((2, 2))})
    with pytest.raises(ModelInvalid, match=r"unexpected layers\.7\.extra\.weight"):
        open_folder(folder)


def test_a_tensor_of_the_wrong_shape_is_named(folder: Path) -> None:
    write(folder, read(folder) | {"mtp.fc.weight": mx.zeros((3, 3))})
    with pytest.raises(ModelInvalid, match=r"fc\.weight"):
        open_folder(folder)


def test_missing_and_extra_tensors_of_the_trunk_are_named(folder: Path) -> None:
    weights = read(folder)
    removed = next(name for name in weights if name.endswith("layers.3.self_attn.k_proj.weight"))
    write(folder, {name: value for name, value in weights.items() if name != removed})
    with pytest.raises(ModelInvalid, match=r"layers\.3\.self_attn\.k_proj\.weight"):
        open_folder(folder)
    write(folder, weights | {"model.layers.99.odd.weight": mx.zeros((1,))})
    with pytest.raises(ModelInvalid, match=r"layers\.99\.odd\.weight"):
        open_folder(folder)


@pytest.mark.parametrize("content", [b"", b"\x00" * 8, b"\xff" * 64, b"\x04\0\0\0\0\0\0\0nope"])
def test_a_damaged_sidecar_is_named(folder: Path, content: bytes) -> None:
    (folder / "mtp.safetensors").write_bytes(content)
    with pytest.raises(ModelInvalid, match=r"mtp\.safetensors"):
        open_folder(folder)


def test_an_unknown_architecture_is_named(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "no_such_model"}))
    with pytest.raises(ModelInvalid, match="no_such_model"):
        open_folder(folder)


def spoil(folder: Path) -> None:
    """Give the head weights that cannot guess."""
    weights = read(folder)
    shape = weights["mtp.fc.weight"].shape
    write(folder, weights | {"mtp.fc.weight": mx.random.normal(shape, key=mx.random.key(5))})


def test_a_head_that_is_plainly_wrong_is_switched_off(folder: Path) -> None:
    spoil(folder)
    model = open_folder(folder)
    assert model.head is None
    assert model.info.mtp_reason.startswith("off, because the head in the model's own shards")
    assert "wired wrongly or not trained" in model.info.mtp_reason


def test_a_wrong_head_that_was_asked_for_drafts_all_the_same(folder: Path) -> None:
    spoil(folder)
    model = open_folder(folder, mtp="on")
    assert model.head is not None
    assert "too little" in model.info.mtp_reason


def as_raw_checkpoint(weights: Weights) -> Weights:
    """The layout of the original Qwen3.5 files: kernels (C, 1, K) and zero-centred norms."""
    raw = {}
    for name, value in weights.items():
        if "conv1d.weight" in name:
            value = mx.moveaxis(value, 1, 2)
        if name.endswith(NORMS) and "linear_attn" not in name:
            value = value - 1.0
        raw[name.replace("language_model.model", "model.language_model")] = value
    return raw


def test_norms_of_a_raw_checkpoint_are_shifted(qwen: Path) -> None:
    reference = open_folder(qwen)
    write(qwen, as_raw_checkpoint(read(qwen)))
    assert_same_head(open_folder(qwen), reference)


def test_norms_that_a_sidecar_declares_are_obeyed(qwen: Path) -> None:
    reference = open_folder(qwen)
    trunk, head = split_head(read(qwen))
    write(qwen, trunk)
    shifted = {name: value - 1.0 if name.endswith(NORMS) else value for name, value in head.items()}
    path = str(qwen / "mtp.safetensors")
    mx.save_safetensors(path, shifted, metadata={"mtp_norms": "zero_centred"})
    assert_same_head(open_folder(qwen), reference)
    mx.save_safetensors(path, shifted, metadata={"mtp_norms": "absolute"})
    assert open_folder(qwen).head is None


@pytest.mark.parametrize("shift", ["none", "all", "layers"])
def test_norms_of_a_silent_sidecar_are_judged(qwen: Path, shift: str) -> None:
    """Also the packs that shifted the outer norms but not those of the block."""
    reference = open_folder(qwen)
    trunk, head = split_head(read(qwen))
    write(qwen, trunk)
    covered = {
        "none": (),
        "all": NORMS,
        "layers": ("layernorm.weight", "q_norm.weight", "k_norm.weight"),
    }
    stored = {n: v - 1.0 if n.endswith(covered[shift]) else v for n, v in head.items()}
    write(qwen, stored, "mtp.safetensors")
    assert_same_head(open_folder(qwen), reference)


def test_the_outer_norms_are_not_evidence() -> None:
    """Real absolute pre_fc norms have means of 0.49 and 0.27."""
    weights = {
        "pre_fc_norm_embedding.weight": mx.full((4,), 0.49),
        "pre_fc_norm_hidden.weight": mx.full((4,), 0.27),
        "layers.0.input_layernorm.weight": mx.full((4,), 0.9),
        "layers.0.self_attn.q_norm.weight": mx.full((4,), 1.2),
    }
    assert likely_shift(weights) == "none"
    assert shift_norms(weights, "none") == weights


@pytest.mark.parametrize("bits", [4, 8])
def test_a_quantised_head(folder: Path, bits: int) -> None:
    reference = open_folder(folder)
    trunk, head = split_head(read(folder))
    assert reference.head is not None
    module = reference.head.module

    def but_fc(path: str, layer: nn.Module) -> bool:
        return hasattr(layer, "to_quantized") and path != "fc" and layer.weight.shape[-1] % 32 == 0

    nn.quantize(module, group_size=32, bits=bits, class_predicate=but_fc)
    packed = dict(tree_flatten(module.parameters()))
    assert any(name.endswith(".scales") for name in packed)
    write(folder, trunk)
    write(folder, packed, "mtp.safetensors")
    model = open_folder(folder, mtp="on")
    values = head_parameters(model)
    name = "layers.0.self_attn.o_proj.weight"
    close = np.abs(values[name] - np.array(head[f"mtp.{name}"])).max()
    assert values[name].dtype == np.float32  # unpacked, since the tests run on the CPU
    assert close < (0.1 if bits == 4 else 0.01)


def test_raw_experts_are_stacked() -> None:
    weights = {
        f"layers.0.mlp.experts.{e}.{name}.weight": mx.full((2, 3), e)
        for e in range(11)
        for name in ("gate_proj", "up_proj")
    }
    stacked = stack_experts(weights | {"fc.weight": mx.zeros((1,))})
    assert stacked["layers.0.mlp.switch_mlp.up_proj.weight"].shape == (11, 2, 3)
    assert stacked["layers.0.mlp.switch_mlp.up_proj.weight"][:, 0, 0].tolist() == list(range(11))
    fused = stack_experts({"layers.0.mlp.experts.gate_up_proj": mx.arange(8).reshape(1, 4, 2)})
    assert fused["layers.0.mlp.switch_mlp.gate_proj.weight"].tolist() == [[[0, 1], [2, 3]]]
    assert fused["layers.0.mlp.switch_mlp.up_proj.weight"].tolist() == [[[4, 5], [6, 7]]]


@pytest.mark.parametrize("quantised", [False, True])
def test_unembedding_some_rows_equals_unembedding_all(quantised: bool) -> None:
    module = nn.Linear(64, 100, bias=False)
    if quantised:
        module = module.to_quantized(group_size=32, bits=4)
    hidden, rows = mx.random.normal((2, 64), key=mx.random.key(0)), mx.array([7, 3, 99])
    expected = np.array(module(hidden)[:, rows])
    np.testing.assert_allclose(np.array(unembed_rows(module, rows)(hidden)), expected, atol=1e-5)
