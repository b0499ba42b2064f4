"""Frames as server-sent events."""

from collections.abc import Iterable

from mtplx_server.protocols.base import Frame

CONTENT_TYPE = "text/event-stream; charset=utf-8"
HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}
KEEP_ALIVE = b": keep-alive\n\n"

# Characters that end no line of an event, though many clients' line readers think so. JSON has them
# in strings only, where they can be written in another way.
_LINE_ENDS = {ord(each): f"\\u{ord(each):04x}" for each in "\x85\u2028\u2029"}


def encode(frames: Iterable[Frame]) -> bytes:
    """The bytes of some frames; the data of each is one line, JSON or a word."""
    lines = (f"data: {frame.data.translate(_LINE_ENDS)}\n\n" for frame in frames)
    return "".join(lines).encode()
