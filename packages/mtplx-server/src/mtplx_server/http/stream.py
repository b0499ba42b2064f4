"""Pumps answers to a client: events to frames, frames to the socket, signs of life in silence."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, cast

from mtplx_engine.events import Started
from mtplx_server.errors import problem_of
from mtplx_server.http.framing import Framing
from mtplx_server.http.merging import Burst
from mtplx_server.http.pacing import Clock, Cutter, Pace
from mtplx_server.protocols.base import StreamEncoder

_log = logging.getLogger(__name__)

Send = Callable[[bytes], Awaitable[None]]


async def pump(
    started: Sequence[Started],
    source: AsyncIterator[Burst],
    encoder: StreamEncoder,
    send: Send,
    *,
    framing: Framing,
    pace: Pace,
    keepalive_s: float,
    request_id: str,
) -> None:
    """Send whole answers to an accepted prompt; a failure is told inside the stream.

    Args:
        started: The first event of each generation.
        source: The rest of the generations.
        encoder: Writes the frames.
        send: Waits until the client has room for more.
        framing: How frames are told apart.
        pace: How the answers are cut into frames.
        keepalive_s: A silence of this length is broken, whatever the model does meanwhile.
        request_id: Names the request in the log.
    """
    line = _Line(send, keepalive_s)
    try:
        await line.send(framing.encode(encoder.open(started)))  # even nothing brings the headers
        await _pump(source, encoder, line, framing, pace)
        last = encoder.close()
    except Exception as error:
        problem = problem_of(error)
        if problem.status == 500:
            _log.exception("Request %s failed after its answer had begun", request_id)
        last = encoder.fail(problem)
    await send(framing.encode(last))


class _Line:
    """The way to the client, which must not be silent for too long."""

    def __init__(self, send: Send, keepalive_s: float) -> None:
        self._send = send
        self._keepalive_s = keepalive_s
        self._last = time.monotonic()

    async def send(self, data: bytes) -> None:
        """Send some frames."""
        await self._send(data)
        self._last = time.monotonic()

    def patience_s(self) -> float:
        """Seconds for which nothing need be sent."""
        return max(self._last + self._keepalive_s - time.monotonic(), 0.0)


async def _pump(
    source: AsyncIterator[Burst],
    encoder: StreamEncoder,
    line: _Line,
    framing: Framing,
    pace: Pace,
) -> None:
    cutters: dict[int, Cutter] = {}
    clock = Clock()
    coming = _next(source)
    try:
        while True:
            # Not all that comes is sent: progress is not, nor is a call that is kept back.
            while not await _came(coming, line.patience_s()):
                await line.send(framing.encode(encoder.idle()) or framing.comment)
            try:
                choice, burst = coming.result()
            except StopAsyncIteration:
                return
            coming = _next(source)
            clock.arrived()
            groups = cutters.setdefault(choice, Cutter(pace)).cut(burst)
            for at, group in enumerate(groups):
                # Once more has come there is nothing to wait for.
                if at and not coming.done():
                    await _came(coming, clock.pause_s(len(groups)))
                frames = [frame for event in group for frame in encoder.feed(choice, event)]
                if frames:
                    await line.send(framing.encode(frames))
    finally:
        coming.cancel()
        await asyncio.wait({coming})


def _next(source: AsyncIterator[Burst]) -> asyncio.Task[Burst]:
    return asyncio.create_task(cast(Coroutine[Any, Any, Burst], anext(source)))


async def _came(coming: asyncio.Task[Burst], timeout_s: float) -> bool:
    """Wait until something has come, for so long; return whether it has."""
    done, _ = await asyncio.wait({coming}, timeout=timeout_s)
    return bool(done)
