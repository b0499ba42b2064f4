"""Frames as server-sent events."""

from collections.abc import Iterable

from mtplx_server.protocols.base import Frame

CONTENT_TYPE = "text/event-stream; charset=utf-8"
HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}
KEEP_ALIVE = b": keep-alive\n\n"


def encode(frames: Iterable[Frame]) -> bytes:
    """The bytes of some frames; the data of each is one line."""
    return "".join(f"data: {frame.data}\n\n" for frame in frames).encode()
