"""The server as a process: bind, open the engine, serve, stop on a signal."""

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable
from typing import Any

from sanic import Sanic

from mtplx_engine.interface import ChatEngine
from mtplx_server.app import create_app
from mtplx_server.errors import AddressInUse, AddressRefused
from mtplx_server.serving import serve
from mtplx_server.settings import ServerSettings

_log = logging.getLogger(__name__)

_BACKLOG = 128
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(
    settings: ServerSettings,
    open_engine: Callable[[], ChatEngine],
    *,
    on_ready: Callable[[str], None],
) -> int:
    """Serve in this process and thread until SIGINT or SIGTERM; a second signal ends at once.

    The port is taken before the engine is opened, so that a busy one costs no loading time.
    Connections made meanwhile wait.

    Args:
        settings: How to serve.
        open_engine: Opens the engine; called on this thread.
        on_ready: Called with the server's URL once requests are answered.

    Returns:
        The exit code of the process.

    Raises:
        AddressInUse: Somebody else listens on the port.
        AddressRefused: The address is not one to listen on.
        EngineError: The engine cannot be opened.
    """
    with bind(settings.host, settings.port) as sock:
        url = _url(sock)
        engine = open_engine()
        try:
            app = create_app(settings, engine)
            asyncio.run(_serve_until_signal(app, engine, sock, settings, lambda: on_ready(url)))
        except BaseException:
            engine.close()
            raise
    return 0


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens on a loopback address; connections wait until it is served.

    Raises:
        AddressInUse: Somebody else listens on the port.
        AddressRefused: The address is not one to listen on.
    """
    family, address = _resolve(host, port)
    if not ipaddress.ip_address(address[0]).is_loopback:
        raise AddressRefused(
            f"Refusing to listen on {host}: requests need no key, so only this machine may send"
            " them. Use a loopback address such as 127.0.0.1."
        )
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(
                f"{host}:{port} is in use by another program; choose another port with --port."
            ) from None
        raise AddressRefused(f"Cannot listen on {host!r}, port {port}: {error.strerror}.") from None
    return sock


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """The first address of a name, an IPv4 one if there is any: clients try that first."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no host name"
        raise AddressRefused(f"Cannot listen on {host!r}: {reason}.") from None
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, (str(address[0]), port)


def _url(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _serve_until_signal(
    app: Sanic[Any, Any],
    engine: ChatEngine,
    sock: socket.socket,
    settings: ServerSettings,
    on_ready: Callable[[], None],
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop_once() -> None:
        # From here on a signal does what it does to any program: it ends it.
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        _log.info("Stopping; running answers have %g s to finish", settings.drain_s)
        stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop_once)
    await serve(app, engine, sock, stop=stop, drain_s=settings.drain_s, on_ready=on_ready)
