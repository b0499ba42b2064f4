"""Binds the endpoints of a protocol to routes."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from urllib.parse import unquote

from sanic import HTTPResponse, Request, Sanic

from mtplx_engine.events import ChatResult, Event
from mtplx_engine.interface import ChatEngine
from mtplx_engine.runtime.generation import Generation, fold
from mtplx_server.http import sse
from mtplx_server.http.body import parse_body, read_body
from mtplx_server.http.merging import bursts
from mtplx_server.http.middleware.request_id import request_id
from mtplx_server.http.pacing import Pace
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
        generations = engine.submit_batch(decoded.requests, decoded.choices)
        try:
            if decoded.stream:
                await _stream(request, generations, decoded, settings)
                return None
            return json_reply(decoded.encoder.reply(await _results(generations)))
        finally:
            # A client that leaves cancels this task, here or in a wait; then nobody needs the rest.
            for each in generations:
                each.cancel()

    return handle


async def _results(generations: Sequence[Generation]) -> list[ChatResult]:
    """All whole answers. They are read at once, so that a failure of any is told without delay."""
    said: list[list[Event]] = [[] for _ in generations]
    async for at, events in bursts(generations):
        said[at] += events
    return [fold(iter(events)) for events in said]


async def _stream(
    request: Request, generations: Sequence[Generation], decoded: Decoded, settings: ServerSettings
) -> None:
    # A failure before the prompts are accepted is still an HTTP status.
    started = [await anext(each) for each in generations]
    response = Reply(headers=dict(sse.HEADERS), content_type=sse.CONTENT_TYPE)
    await request.respond(response)
    await pump(
        started,
        bursts(generations),
        decoded.encoder.stream(),
        response.send,
        pace=Pace(settings.stream_interval, settings.stream_pacing),
        keepalive_s=settings.keepalive_s,
        request_id=request_id(request),
    )
    await response.send(end_stream=True)
