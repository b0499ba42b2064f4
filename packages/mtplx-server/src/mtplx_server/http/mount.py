"""Binds the endpoints of a protocol to routes."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from sanic import HTTPResponse, Request, Sanic

from mtplx_client.wire.base import WireRequest
from mtplx_engine.events import ChatResult, Event, Started
from mtplx_engine.interface import ChatEngine
from mtplx_engine.runtime.generation import Generation, fold
from mtplx_server.errors import Problem, RequestRefused
from mtplx_server.http.body import parse_body, read_body
from mtplx_server.http.framing import FRAMINGS, Framing
from mtplx_server.http.merging import bursts
from mtplx_server.http.middleware.request_id import request_id
from mtplx_server.http.pacing import Pace
from mtplx_server.http.reply import Reply, json_reply
from mtplx_server.http.stream import pump
from mtplx_server.protocols.base import (
    Action,
    ApiProtocol,
    Command,
    Count,
    Decoded,
    Endpoint,
    Generate,
    Lookup,
    Served,
    Snapshot,
    Visit,
)
from mtplx_server.protocols.session import with_session
from mtplx_server.settings import ServerSettings

Handler = Callable[..., Coroutine[Any, Any, HTTPResponse | None]]
Read = Callable[[Request, type[WireRequest]], Coroutine[Any, Any, Any]]


def mount(
    app: Sanic[Any, Any], protocol: ApiProtocol, engine: ChatEngine, settings: ServerSettings
) -> None:
    """Add the routes of a protocol to an app."""
    for at, endpoint in enumerate(protocol.endpoints):
        looks_up = isinstance(endpoint, Lookup)
        app.add_route(
            _handler(endpoint, engine, settings),
            endpoint.path,
            methods=["GET", "HEAD"] if looks_up else ["POST"],
            name=f"{protocol.name}_{at}",
            # The handler reads the body, see read_body; where there is none to read, Sanic does.
            stream=not isinstance(endpoint, Lookup | Command),
            ctx_protocol=protocol,
        )


def _handler(endpoint: Endpoint, engine: ChatEngine, settings: ServerSettings) -> Handler:
    async def read(request: Request, wire: type[WireRequest]) -> Any:
        return parse_body(await read_body(request, settings.max_body_bytes), wire)

    match endpoint:
        case Generate():
            return _generate(endpoint, engine, settings, read)
        case Count():
            return _count(endpoint, engine, settings, read)
        case Action():
            return _action(endpoint, engine, settings, read)
        case Lookup():
            return _lookup(endpoint, engine)
        case Command():
            return _command(endpoint, engine)


def _lookup(endpoint: Lookup, engine: ChatEngine) -> Handler:
    async def handle(request: Request, **rest: str) -> HTTPResponse:
        snapshot = Snapshot(engine.model, engine.status(), cache=engine.cache_status())
        visit = Visit(unquote("".join(rest.values())), _headers(request))
        status, reply = endpoint.answer(snapshot, visit)
        return json_reply(reply, status)

    return handle


def _command(endpoint: Command, engine: ChatEngine) -> Handler:
    async def handle(request: Request, **rest: str) -> HTTPResponse:
        _refuse_other_sites(request)
        named = unquote("".join(rest.values()))
        done = await asyncio.wrap_future(endpoint.run(engine, named))
        return json_reply(endpoint.encode(done, named))

    return handle


def _refuse_other_sites(request: Request) -> None:
    """A page of another site can send a POST without a body; browsers then name the site."""
    origin = request.headers.getone("origin", None)
    if origin is not None and origin.partition("://")[2] != request.host:
        text = f"A page of {origin} may not do this."
        raise RequestRefused(Problem(403, "invalid_request_error", text, "forbidden_origin"))


def _action(endpoint: Action, engine: ChatEngine, settings: ServerSettings, read: Read) -> Handler:
    async def handle(request: Request) -> HTTPResponse:
        body = await read(request, endpoint.wire)
        snapshot = Snapshot(engine.model, engine.status(), settings.strict_model)
        return json_reply(endpoint.answer(body, snapshot))

    return handle


def _count(endpoint: Count, engine: ChatEngine, settings: ServerSettings, read: Read) -> Handler:
    async def handle(request: Request) -> HTTPResponse:
        asked = endpoint.decode(await read(request, endpoint.wire), _served(engine, settings))
        counted = await asyncio.wrap_future(engine.count_tokens(asked))
        return json_reply(endpoint.encode(counted))

    return handle


def _generate(
    endpoint: Generate, engine: ChatEngine, settings: ServerSettings, read: Read
) -> Handler:
    framing = FRAMINGS[endpoint.framing]

    async def handle(request: Request) -> HTTPResponse | None:
        body = await read(request, endpoint.wire)
        decoded = endpoint.decode(body, _served(engine, settings), request_id(request))
        generations = _submit(engine, decoded, _headers(request), body)
        try:
            if decoded.stream:
                await _stream(request, generations, decoded, framing, settings)
                return None
            return json_reply(decoded.encoder.reply(await _results(generations)))
        finally:
            # A client that leaves cancels this task, here or in a wait; then nobody needs the rest.
            for each in generations:
                each.cancel()

    return handle


def _served(engine: ChatEngine, settings: ServerSettings) -> Served:
    return Served(
        engine.model, settings.strict_fields, settings.strict_model, settings.skip_hosted_tools
    )


def _submit(
    engine: ChatEngine, decoded: Decoded, headers: Mapping[str, str], body: WireRequest
) -> Sequence[Generation]:
    fields = {**dict(body), **(body.model_extra or {})}
    asked = [with_session(each, headers, fields) for each in decoded.requests]
    return engine.submit_batch(asked, decoded.choices) if asked else ()


def _headers(request: Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


async def _results(generations: Sequence[Generation]) -> list[ChatResult]:
    """All whole answers. They are read at once, so that a failure of any is told without delay."""
    said: list[list[Event]] = [[] for _ in generations]
    async for at, events in bursts(generations):
        said[at] += events
    return [fold(iter(events)) for events in said]


async def _stream(
    request: Request,
    generations: Sequence[Generation],
    decoded: Decoded,
    framing: Framing,
    settings: ServerSettings,
) -> None:
    # A failure before the prompts are accepted is still an HTTP status.
    started = [cast(Started, await anext(each)) for each in generations]
    response = Reply(headers=dict(framing.headers), content_type=framing.content_type)
    await request.respond(response)
    await pump(
        started,
        bursts(generations),
        decoded.encoder.stream(),
        response.send,
        framing=framing,
        pace=Pace(settings.stream_interval, settings.stream_pacing),
        keepalive_s=settings.keepalive_s,
        request_id=request_id(request),
    )
    await response.send(end_stream=True)
