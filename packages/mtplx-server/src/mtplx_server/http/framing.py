"""How the frames of a stream are told apart on the wire."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from mtplx_server.protocols.base import Frame

# Characters that end no line, though many clients' line readers think so. JSON has them in strings
# only, where they can be written in another way.
_LINE_ENDS = {ord(each): f"\\u{ord(each):04x}" for each in "\x85\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Framing:
    """One way.

    Attributes:
        content_type: What the reply says of itself.
        write: One frame; its data is one line.
        comment: What clients read over, for silences.
        headers: Further headers, so that nobody on the way holds frames back.
    """

    content_type: str
    write: Callable[[Frame], str]
    comment: bytes
    headers: Mapping[str, str]

    def encode(self, frames: Iterable[Frame]) -> bytes:
        """The bytes of some frames."""
        return "".join(map(self.write, frames)).translate(_LINE_ENDS).encode()


def _event(frame: Frame) -> str:
    kind = "" if frame.event is None else f"event: {frame.event}\n"
    return f"{kind}data: {frame.data}\n\n"


def _line(frame: Frame) -> str:
    return f"{frame.data}\n"


_HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}

FRAMINGS: Mapping[Literal["sse", "ndjson"], Framing] = {
    # https://html.spec.whatwg.org/multipage/server-sent-events.html
    "sse": Framing("text/event-stream; charset=utf-8", _event, b": keep-alive\n\n", _HEADERS),
    # A line of white space is none of the values: https://github.com/ndjson/ndjson-spec
    "ndjson": Framing("application/x-ndjson", _line, b"", _HEADERS),
}
