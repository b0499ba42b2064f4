"""Puts the server together: one Sanic app over one engine, with all protocols."""

from typing import Any

from sanic import Sanic

from mtplx_engine.interface import ChatEngine
from mtplx_server.http.failures import EnvelopeErrorHandler
from mtplx_server.http.middleware import request_id
from mtplx_server.http.mount import mount
from mtplx_server.protocols import (
    admin,
    anthropic_messages,
    health,
    models,
    ollama,
    openai_chat,
    openai_completions,
    openai_responses,
    openapi,
)
from mtplx_server.settings import ServerSettings

APIS = (
    health.PROTOCOL,
    models.PROTOCOL,
    openai_chat.PROTOCOL,
    openai_completions.PROTOCOL,
    anthropic_messages.PROTOCOL,
    openai_responses.PROTOCOL,
    ollama.PROTOCOL,
    admin.PROTOCOL,
)
PROTOCOLS = (*APIS, openapi.protocol(APIS))

_HOURS_S = 24 * 3600


def create_app(settings: ServerSettings, engine: ChatEngine) -> Sanic[Any, Any]:
    """An app that is ready to be served, see `serving.serve`."""
    app = Sanic("mtplx", configure_logging=False, error_handler=EnvelopeErrorHandler(PROTOCOLS))
    # Sanic lists the apps of a process by name, and would refuse a second server in it.
    Sanic.unregister_app(app)
    app.config.update(
        # Sanic counts from the last byte written, so a silent prefill would be cut off.
        RESPONSE_TIMEOUT=_HOURS_S,
        REQUEST_MAX_SIZE=settings.max_body_bytes,
        AUTO_EXTEND=False,
        ACCESS_LOG=False,
        MOTD=False,
    )
    request_id.install(app)
    for protocol in PROTOCOLS:
        mount(app, protocol, engine, settings)
    return app
