"""Pumps a generation to a client: events to frames, frames to the socket, comments in silence."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from mtplx_engine.events import Event
from mtplx_server.errors import problem_of
from mtplx_server.http import sse
from mtplx_server.protocols.base import StreamEncoder

_log = logging.getLogger(__name__)

Send = Callable[[bytes], Awaitable[None]]


async def pump(
    events: AsyncIterator[Event],
    encoder: StreamEncoder,
    send: Send,
    *,
    keepalive_s: float,
    request_id: str,
) -> None:
    """Send a whole answer whose prompt was accepted; a failure is told inside the stream.

    Args:
        events: The rest of a generation.
        encoder: Writes the frames.
        send: Waits until the client has room for more.
        keepalive_s: Silence of this length is broken by a comment.
        request_id: Names the request in the log.
    """
    try:
        await send(sse.encode(encoder.open()))
        while True:
            try:
                async with asyncio.timeout(keepalive_s):
                    event = await anext(events)
            except TimeoutError:
                await send(sse.KEEP_ALIVE)
                continue
            except StopAsyncIteration:
                break
            frames = encoder.feed(event)
            if frames:
                await send(sse.encode(frames))
        last = encoder.close()
    except Exception as error:
        problem = problem_of(error)
        if problem.status == 500:
            _log.exception("Request %s failed after its answer had begun", request_id)
        last = encoder.fail(problem)
    await send(sse.encode(last))
