"""Model folders that somebody or something has spoilt: one clear line each, never a traceback."""

import json
from pathlib import Path
from typing import Any

import pytest

from mtplx_engine import ModelError
from mtplx_engine.models.card import read_card
from mtplx_engine.models.load import load
from mtplx_engine.models.locate import Located
from mtplx_engine.tiny import write_tiny_model

CONFIG: dict[str, dict[str, Any]] = {
    "text config is text": {"text_config": "x"},
    "quantization is a number": {"quantization": 5},
    "quantization without group": {"quantization": {"bits": 4}},
    "no heads": {"num_attention_heads": 0},
    "heads are text": {"num_attention_heads": "x"},
    "context is text": {"max_position_embeddings": "abc"},
    "rope is text": {"rope_scaling": "x"},
    "no model type": {"model_type": None},
    "unknown model type": {"model_type": "no_such"},
}
FILES = {
    "config.json": ["", "[]", "[" * 100_000, "nonsense"],
    "generation_config.json": ["[]", '{"top_k": 1e999}', '{"temperature": "hot"}', "{"],
    "tokenizer_config.json": ["[]", "{"],
    "tokenizer.json": ["[]", "{}", "{"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny", "llama")


def assert_one_line(folder: Path) -> None:
    located = Located(folder, "tiny", "a test", None)
    with pytest.raises(ModelError) as caught:
        load(located, mtp="auto", depth=None, on_progress=lambda _: None)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message


def describe(folder: Path) -> None:
    """`inspect` may know less than loading does, but it must not fall over."""
    message = ""
    try:
        read_card(folder)
    except ModelError as error:
        message = str(error)
    assert "\n" not in message


@pytest.mark.parametrize("name", CONFIG)
def test_settings_of_the_wrong_kind(folder: Path, name: str) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | CONFIG[name]))
    describe(folder)
    assert_one_line(folder)


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in FILES.items() for t in texts])
def test_spoilt_files(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    describe(folder)
    assert_one_line(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_files(folder: Path, name: str) -> None:
    (folder / name).unlink()
    describe(folder)
    assert_one_line(folder)


@pytest.mark.parametrize("cut", [1, 1000, 100_000])
def test_weights_that_are_cut_short(folder: Path, cut: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(ModelError, match="cut short"):
        read_card(folder)
    assert_one_line(folder)
