from collections.abc import Iterator
from pathlib import Path

import pytest

from mtplx_engine import Engine, EngineOptions
from mtplx_engine.tiny import TinyFamily, write_tiny_model


@pytest.fixture(scope="session", params=["qwen3_5", "qwen3_next", "llama"])
def family(request: pytest.FixtureRequest) -> TinyFamily:
    name: TinyFamily = request.param
    return name


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory, family: TinyFamily) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / family, family)


@pytest.fixture(scope="session")
def tiny_engine(tiny_folder: Path) -> Iterator[Engine]:
    with Engine.open(EngineOptions(model=str(tiny_folder), mtp="on")) as engine:
        yield engine


@pytest.fixture(scope="session")
def qwen_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny-qwen")


@pytest.fixture(scope="session")
def qwen_engine(qwen_folder: Path) -> Iterator[Engine]:
    with Engine.open(EngineOptions(model=str(qwen_folder), mtp="on")) as engine:
        yield engine


@pytest.fixture(scope="session", params=["qwen3_5", "llama"])
def wide_family(request: pytest.FixtureRequest) -> TinyFamily:
    name: TinyFamily = request.param
    return name


@pytest.fixture(scope="session")
def wide_folder(tmp_path_factory: pytest.TempPathFactory, wide_family: TinyFamily) -> Path:
    """A model whose heads are 64 wide."""
    return write_tiny_model(tmp_path_factory.mktemp("wide"), wide_family, head_dim=64)
