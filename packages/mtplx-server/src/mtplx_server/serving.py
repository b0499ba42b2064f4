"""Serves an app on a socket until told to stop, then drains: no signals and no process here."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from sanic import Sanic

from mtplx_engine.interface import ChatEngine

_POLL_S = 0.05
_FLUSH_S = 2.0


async def serve(
    app: Sanic[Any, Any],
    engine: ChatEngine,
    sock: socket.socket,
    *,
    stop: asyncio.Event,
    drain_s: float,
    on_ready: Callable[[], None],
) -> None:
    """Serve until `stop` is set; then let running answers finish and close the engine.

    Args:
        app: What to serve.
        engine: The engine behind it; closed when this returns.
        sock: A socket that listens.
        stop: Set it to end.
        drain_s: Running answers may go on for so long after `stop`.
        on_ready: Called once connections are accepted.
    """
    server: Any = await app.create_server(  # Any: most of its methods have no types
        sock=sock,
        return_asyncio_server=True,
        # Connections that already wait are taken only once the routes are there.
        asyncio_server_kwargs={"start_serving": False},
    )
    await server.startup()
    await server.before_start()
    await server.start_serving()
    await server.after_start()
    on_ready()
    await stop.wait()
    await _drain(server, engine, drain_s)


async def _drain(server: Any, engine: ChatEngine, drain_s: float) -> None:
    await server.before_stop()
    closed = server.close()  # accepts no more; done when the last connection is
    engine_closed = asyncio.create_task(asyncio.to_thread(engine.close, drain_s))
    while not engine_closed.done():
        _close_idle(server)
        await asyncio.wait([engine_closed], timeout=_POLL_S)
    # Every generation has ended by now; only its last bytes may still be on their way.
    waited = 0.0
    while server.connections and waited < _FLUSH_S:
        _close_idle(server)
        await asyncio.sleep(_POLL_S)
        waited += _POLL_S
    for connection in list(server.connections):
        connection.abort()
    await closed
    await server.after_stop()
    await engine_closed


def _close_idle(server: Any) -> None:
    for connection in list(server.connections):
        connection.close_if_idle()
