"""Local HTTP server over an mtplx engine, for the clients that people already use.

from mtplx_engine import Engine
from mtplx_server import ServerSettings, run

run(ServerSettings(port=8000), Engine.open, on_ready=print)
"""

from mtplx_server._version import __version__
from mtplx_server.app import create_app
from mtplx_server.errors import (
    AddressInUse,
    AddressRefused,
    InvalidSetting,
    RequestRefused,
    ServerError,
)
from mtplx_server.process import run
from mtplx_server.settings import ServerSettings

__all__ = [
    "AddressInUse",
    "AddressRefused",
    "InvalidSetting",
    "RequestRefused",
    "ServerError",
    "ServerSettings",
    "__version__",
    "create_app",
    "run",
]
