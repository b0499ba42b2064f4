"""A real server on a real socket, over an engine that plays scripts."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from mtplx_engine.testing import ScriptedEngine
from mtplx_server import ServerSettings
from mtplx_server.testing import serving

Serve = Callable[..., httpx.Client]
Connect = Callable[[httpx.Client], socket.socket]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves an engine with given settings and gives an HTTP client for it."""
    with ExitStack() as stack:

        def start(engine: ScriptedEngine | None = None, **settings: Any) -> httpx.Client:
            settings = {"drain_s": 0.0, **settings}
            url = stack.enter_context(
                serving(engine or ScriptedEngine(), ServerSettings(**settings))
            )
            return stack.enter_context(httpx.Client(base_url=url, timeout=30))

        yield start


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens a bare connection to the server that a client talks to."""
    with ExitStack() as stack:

        def start(client: httpx.Client) -> socket.socket:
            address = urlsplit(str(client.base_url))
            return stack.enter_context(
                socket.create_connection((address.hostname, address.port), timeout=30)
            )

        yield start


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    """Waits until a condition holds, and fails when it does not for long."""

    def wait(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.005)

    return wait
