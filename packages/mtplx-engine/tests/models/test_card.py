"""What a model folder tells without its weights being loaded."""

import json
import struct

import pytest

from mtplx_engine.errors import ModelInvalid
from mtplx_engine.models.card import read_card

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 2048,
}
TRUNK = {"model.embed_tokens.weight": ("F16", [100, 64]), "model.norm.weight": ("F16", [64])}
HEAD = {"mtp.fc.weight": ("F16", [64, 128]), "mtp.norm.weight": ("F16", [64])}


def write_weights(path, tensors):
    """A file whose header is right; of the weights there is not one byte."""
    header = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}
        for name, (dtype, shape) in tensors.items()
    }
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


@pytest.fixture
def card(tmp_path):
    """Write a folder and read its card."""

    def card(config=LLAMA, weights=TRUNK, **more):
        (tmp_path / "config.json").write_text(json.dumps(config))
        (tmp_path / "tokenizer.json").write_text("{}")
        write_weights(tmp_path / "model.safetensors", weights)
        for name, content in more.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content))
        return read_card(tmp_path)

    return card


def test_a_plain_model(card, tmp_path):
    plain = card()
    assert (plain.model_type, plain.layers, plain.hidden_size) == ("llama", 2, 64)
    assert (plain.context_length, plain.vocabulary) == (2048, 100)
    assert plain.parameters == 100 * 64 + 64
    assert plain.quantization == "none"
    assert plain.weight_bytes == (tmp_path / "model.safetensors").stat().st_size
    assert (plain.head, plain.servable, plain.drafts) == (None, True, False)
    assert "no MTP head" in plain.verdict


def test_packed_tensors_count_for_what_they_stand_for(card):
    weights = {
        "a.weight": ("U32", [10, 8]),  # 4 bits: 64 values a row
        "a.scales": ("F16", [10, 2]),
        "a.biases": ("F16", [10, 2]),
        "a.bias": ("F16", [10]),
        "b.weight": ("U32", [5, 16]),  # 8 bits in groups of 16: 64 values a row
        "b.scales": ("F16", [5, 4]),
    }
    settings = {"group_size": 32, "bits": 4, "b": {"group_size": 16, "bits": 8}}
    packed = card(LLAMA | {"quantization": settings}, weights)
    assert packed.parameters == 10 * 64 + 10 + 5 * 64
    assert packed.quantization == "4-bit, group 32; some tensors 8-bit"


@pytest.mark.parametrize(("norm", "bytes_per_value"), [("F16", 2), ("BF16", 2), ("F32", 4)])
def test_keys_and_values_take_the_type_of_the_norms(card, norm, bytes_per_value):
    weights = TRUNK | {"model.norm.weight": (norm, [64])}
    footprint = card(weights=weights).footprint
    assert footprint.per_token_bytes == 2 * 2 * 2 * 16 * bytes_per_value
    assert footprint.state_bytes == 0


def test_recurrent_layers_cost_the_same_at_any_length(card):
    text = LLAMA | {
        "num_hidden_layers": 8,
        "head_dim": 32,
        "full_attention_interval": 4,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
    }
    by_interval = card({"model_type": "qwen3_5", "text_config": text}).footprint
    kinds = (["linear_attention"] * 3 + ["full_attention"]) * 2
    by_kind = card({"model_type": "qwen3_5", "text_config": text | {"layer_types": kinds}})
    assert by_interval == by_kind.footprint
    assert by_interval.per_token_bytes == 2 * (2 * 2 * 32) * 2
    assert by_interval.state_bytes == 6 * (4 * 8 * 16 + 3 * (2 * 2 * 8 + 4 * 16)) * 4


def test_latent_attention_caches_one_vector(card):
    config = LLAMA | {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert card(config).footprint.per_token_bytes == 2 * (512 + 64) * 2


@pytest.mark.parametrize(
    ("limit", "expected"), [(1000, 1000), (10**30, 2048), (None, 2048), (8192, 2048)]
)
def test_the_tokenizers_limit_counts_when_it_is_one(card, limit, expected):
    assert card(tokenizer_config={"model_max_length": limit}).context_length == expected


def test_a_head_is_found_and_not_counted_as_trunk(card):
    with_head = card(weights=TRUNK | HEAD)
    assert with_head.parameters == 100 * 64 + 64
    assert "2 tensors" in with_head.head
    assert with_head.drafts
    assert "with MTP" in with_head.verdict


def test_a_head_outside_the_folder(card, tmp_path):
    card()
    outside = tmp_path / "elsewhere.safetensors"
    write_weights(outside, HEAD)
    assert read_card(tmp_path, outside).drafts


def test_a_head_of_a_type_that_cannot_draft(card):
    other = card(LLAMA | {"model_type": "gemma3"}, TRUNK | HEAD)
    assert (other.servable, other.drafts) == (True, False)
    assert "heads of 'gemma3' are not supported" in other.verdict


@pytest.mark.parametrize(("model_type", "servable"), [("mistral", True), ("no_such", False)])
def test_types_are_known_as_mlx_lm_knows_them(card, model_type, servable):
    assert card(LLAMA | {"model_type": model_type}).servable is servable


def test_an_unknown_type_is_named(card):
    assert "no model type 'no_such'" in card(LLAMA | {"model_type": "no_such"}).verdict


def test_a_missing_shard_is_named(card):
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    with pytest.raises(ModelInvalid, match=r"names model-2\.safetensors"):
        card(**{"model.safetensors.index": index})


def test_a_folder_without_weights(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelInvalid, match=r"no model\*\.safetensors"):
        read_card(tmp_path)
