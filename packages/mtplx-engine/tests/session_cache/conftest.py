from collections.abc import Iterator
from pathlib import Path

import pytest

from mtplx_engine import Engine, EngineOptions, SessionCacheOptions
from mtplx_engine.tiny import write_tiny_model


@pytest.fixture(scope="session", params=["llama", "qwen3_5", "qwen3_next"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model of each family."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / request.param, request.param)


@pytest.fixture(scope="session")
def cold(folder: Path) -> Iterator[Engine]:
    """An engine that keeps nothing."""
    off = SessionCacheOptions(ram=0)
    with Engine.open(EngineOptions(str(folder), mtp="on", session_cache=off)) as engine:
        yield engine


@pytest.fixture
def warm(folder: Path) -> Iterator[Engine]:
    """An engine with room for everything."""
    with Engine.open(EngineOptions(str(folder), mtp="on")) as engine:
        yield engine
