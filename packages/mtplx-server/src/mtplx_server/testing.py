"""Runs a server inside a test's process, on a real socket and a thread of its own.

with serving(ScriptedEngine()) as url:
    httpx.get(f"{url}/health")
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mtplx_engine.interface import ChatEngine
from mtplx_server.app import create_app
from mtplx_server.process import bind
from mtplx_server.serving import serve
from mtplx_server.settings import ServerSettings


@contextmanager
def serving(engine: ChatEngine, settings: ServerSettings | None = None) -> Iterator[str]:
    """Serve an engine on a free port and give the URL; leaving the block stops both.

    Whatever ends the server early is raised when the block is left.
    """
    settings = settings or ServerSettings(drain_s=0.0)
    ready, ended = threading.Event(), threading.Event()
    failures: list[BaseException] = []
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> None:
        stop.append((asyncio.get_running_loop(), asyncio.Event()))
        await serve(
            app, engine, sock, stop=stop[0][1], drain_s=settings.drain_s, on_ready=ready.set
        )

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()
            ready.set()

    with bind("127.0.0.1", 0) as sock:
        host, port = sock.getsockname()
        app = create_app(settings, engine)
        # Sanic rewrites its own source at start-up, which works for one app per process only.
        app.config.TOUCHUP = False
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        ready.wait()
        try:
            if not failures:
                yield f"http://{host}:{port}"
        finally:
            if not ended.is_set():
                loop, event = stop[0]
                loop.call_soon_threadsafe(event.set)
            thread.join()
    if failures:
        raise failures[0]
