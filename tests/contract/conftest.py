"""A real server on a real socket, over an engine that plays a scenario."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from mtplx_engine.testing import Script, ScriptedEngine
from mtplx_server import ServerSettings
from mtplx_server.testing import serving

Play = Callable[..., httpx.Client]


@pytest.fixture
def play() -> Iterator[Play]:
    """Serves a script with given settings and gives an HTTP client for it."""
    with ExitStack() as stack:

        def start(script: Script, **settings: Any) -> httpx.Client:
            served = serving(ScriptedEngine(script), ServerSettings(drain_s=0.0, **settings))
            url = stack.enter_context(served)
            return stack.enter_context(httpx.Client(base_url=url, timeout=30))

        yield start
