"""Binds the endpoints of a protocol to routes."""

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import unquote

from sanic import HTTPResponse, Request, Sanic

from mtplx_engine.interface import ChatEngine
from mtplx_engine.runtime.generation import Generation, fold
from mtplx_server.http import sse
from mtplx_server.http.body import parse_body, read_body
from mtplx_server.http.middleware.request_id import request_id
from mtplx_server.http.reply import Reply, json_reply
from mtplx_server.http.stream import pump
from mtplx_server.protocols.base import ApiProtocol, Decoded, Generate, Lookup, Served, Snapshot
from mtplx_server.settings import ServerSettings

Handler = Callable[..., Coroutine[Any, Any, HTTPResponse | None]]


def mount(
    app: Sanic[Any, Any], protocol: ApiProtocol, engine: ChatEngine, settings: ServerSettings
) -> None:
    """Add the routes of a protocol to an app."""
    for at, endpoint in enumerate(protocol.endpoints):
        match endpoint:
            case Generate():
                handler, methods = _generate(endpoint, engine, settings), ["POST"]
            case Lookup():
                handler, methods = _lookup(endpoint, engine), ["GET", "HEAD"]
        app.add_route(
            handler,
            endpoint.path,
            methods=methods,
            name=f"{protocol.name}_{at}",
            stream=isinstance(endpoint, Generate),  # the handler reads the body, see read_body
            ctx_render_error=protocol.error,
        )


def _lookup(endpoint: Lookup, engine: ChatEngine) -> Handler:
    async def handle(_: Request, **rest: str) -> HTTPResponse:
        snapshot = Snapshot(engine.model, engine.status())
        status, reply = endpoint.answer(snapshot, unquote("".join(rest.values())))
        return json_reply(reply, status)

    return handle


def _generate(endpoint: Generate, engine: ChatEngine, settings: ServerSettings) -> Handler:
    async def handle(request: Request) -> HTTPResponse | None:
        served = Served(engine.model, settings.strict_fields, settings.strict_model)
        body = parse_body(await read_body(request, settings.max_body_bytes), endpoint.wire)
        decoded = endpoint.decode(body, served, request_id(request))
        generation = engine.submit(decoded.request)
        try:
            if decoded.stream:
                await _stream(request, generation, decoded, settings.keepalive_s)
                return None
            events = [event async for event in generation]
            return json_reply(decoded.encoder.reply(fold(iter(events))))
        finally:
            # A client that leaves cancels this task, here or in a wait; then nobody needs the rest.
            generation.cancel()

    return handle


async def _stream(
    request: Request, generation: Generation, decoded: Decoded, keepalive_s: float
) -> None:
    await anext(generation)  # Started; a failure before it is still an HTTP status
    response = Reply(headers=dict(sse.HEADERS), content_type=sse.CONTENT_TYPE)
    await request.respond(response)
    await pump(
        generation,
        decoded.encoder.stream(),
        response.send,
        keepalive_s=keepalive_s,
        request_id=request_id(request),
    )
    await response.send(end_stream=True)
