from collections.abc import Iterator

import httpx
import pytest

from mtplx_engine import Engine, EngineOptions
from mtplx_engine.tiny import write_tiny_model
from mtplx_server.testing import serving


@pytest.fixture(scope="session", params=["qwen3_5", "qwen3_next", "llama"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A client of a real server over a tiny model of each family with a real MTP head."""
    folder = write_tiny_model(tmp_path_factory.mktemp("models") / request.param, request.param)
    engine = Engine.open(EngineOptions(model=str(folder), mtp="on"))
    with serving(engine) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client
