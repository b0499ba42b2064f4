"""A GGUF file becomes a folder that mlx-lm loads and runs."""

import json

from mtplx_engine.backend import mx

import mlx_lm
import pytest

from mtplx_engine.errors import ModelInvalid
from mtplx_engine.models import embedded
from mtplx_engine.models.llama_gguf import convert


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "converted"
    folder.mkdir()
    return folder


def test_the_folder_loads_strictly_and_keeps_every_value(tiny_gguf, folder):
    convert(tiny_gguf, folder, {"temperature": 0.5})
    model, tokenizer = mlx_lm.load(str(folder))
    stored = mx.load(str(tiny_gguf))["blk.0.ffn_down.weight"]
    assert mx.array_equal(model.model.layers[0].mlp.down_proj.weight, stored)
    logits = model(mx.array([tokenizer.encode("hello")]))
    assert logits.shape[-1] == len(tokenizer.get_vocab())
    assert json.loads((folder / "generation_config.json").read_text()) == {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "temperature": 0.5,
    }


def test_settings_follow_the_file(tiny_gguf, folder):
    convert(tiny_gguf, folder, {})
    config = json.loads((folder / "config.json").read_text())
    assert config["rope_traditional"] is True
    assert config["tie_word_embeddings"] is True
    assert config["rms_norm_eps"] == 1e-5
    assert config["max_position_embeddings"] == 64
    assert "quantization" not in config


@pytest.mark.parametrize("text", ["hello 123", "  two\n\nlines\t", "wörld 🙂 日本", "<|im_end|>x"])
def test_text_survives_the_tokenizer(tiny_gguf, folder, text):
    convert(tiny_gguf, folder, {})
    _, tokenizer = mlx_lm.load(str(folder))
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_tokens_digits_merges_and_template(tiny_gguf, folder):
    convert(tiny_gguf, folder, {})
    _, tokenizer = mlx_lm.load(str(folder))
    assert tokenizer.encode("<|im_end|>") == [2]
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("hello12")) == [
        "he",
        "ll",
        "o",
        "1",
        "2",
    ]
    assert tokenizer.eos_token_ids == {2}
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "o"}], return_dict=False)
    assert [ids[0], ids[-1]] == [1, 2]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("general.architecture", "mamba"),
        ("tokenizer.ggml.model", "llama"),
        ("tokenizer.ggml.pre", "qwen2"),
    ],
)
def test_what_it_does_not_understand_is_refused_by_name(tmp_path, folder, write_gguf, key, value):
    path = tmp_path / "other.gguf"
    write_gguf(path, **{key: value})
    with pytest.raises(ModelInvalid, match=f"{key}.*{value}"):
        convert(path, folder, {})


def test_a_damaged_file_is_refused(tmp_path, folder):
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF, but not really")
    with pytest.raises(ModelInvalid, match=r"bad\.gguf cannot be read"):
        convert(path, folder, {})


@pytest.mark.model
def test_the_embedded_default_answers_and_tokenises_as_published(tmp_path):
    folder = embedded.ensure(embedded.home(), on_progress=lambda _: None)
    model, tokenizer = mlx_lm.load(str(folder))
    question = [{"role": "user", "content": "What is the capital of France?"}]
    ids = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_dict=False)
    assert ids[:3] == [1, 9690, 198]  # <|im_start|> system newline
    assert "Paris" in mlx_lm.generate(model, tokenizer, ids, max_tokens=9)
    assert len(tokenizer.encode("2026")) == 4
    assert tokenizer.encode("<|endoftext|><|im_start|><|im_end|>") == [0, 1, 2]
    config = json.loads((folder / "config.json").read_text())
    assert config["quantization"] == {
        "group_size": 32,
        "bits": 4,
        "model.embed_tokens": {"group_size": 32, "bits": 8},
    }
    head = embedded.head_for(folder)
    assert head is not None
    assert head.is_file()
