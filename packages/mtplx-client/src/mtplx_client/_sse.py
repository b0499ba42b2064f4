"""Reads a stream of server-sent events from bytes that arrive in any pieces.

Lines are cut as bytes and decoded whole, so a character that is split between two pieces is safe.
"""

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event.

    Attributes:
        data: The payload; several `data:` lines are joined with line feeds.
        event: Its name, empty when it has none.
    """

    data: str
    event: str = ""


class EventDecoder:
    """Decodes one stream. An event that was not ended by a blank line is not delivered."""

    def __init__(self) -> None:
        self._rest = b""
        self._start = True
        self._data: list[str] = []
        self._event = ""

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Take more bytes and return the events that they complete."""
        # A carriage return at the very end may be half of a line end: it waits for the next byte.
        text = self._rest + piece
        held = b"\r" if text.endswith(b"\r") else b""
        lines = _LINE_END.split(text[: len(text) - len(held)])
        self._rest = lines.pop() + held
        events = (self._take(line) for line in lines)
        return [event for event in events if event is not None]

    def _take(self, raw: bytes) -> ServerEvent | None:
        line = raw.decode("utf-8", errors="replace")
        if self._start:
            self._start = False
            line = line.removeprefix("\ufeff")
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        return ServerEvent("\n".join(data), event) if data else None
