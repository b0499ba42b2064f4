"""Reading a language from text that arrives in pieces, written like reading it from a whole text.

A reader is a generator: `yield None` says that it needs more text, everything else that it yields
has been read. Since it resumes where it stood, how the text is cut cannot change what it reads.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from mtplx_engine.events import CallBroken, CallDelta, CallEnded, CallStarted, TextDelta

Parsed = TextDelta | CallStarted | CallDelta | CallEnded | CallBroken
T = TypeVar("T")
Steps = Generator[Parsed | None, None, T]


class Malformed(Exception):
    """The text is not in the language that the reader expects, or ends too early."""


class Source:
    """The text that was not read yet, and a record of what was.

    Attributes:
        held: Text that has arrived and was not taken.
        ended: Whether no more will arrive.
    """

    def __init__(self) -> None:
        self.held = ""
        self.ended = False
        self._record: list[str] = []

    def start_record(self, taken: str = "") -> None:
        """Forget what was taken so far; `record` begins here, or with what was just taken."""
        self._record = [taken]

    @property
    def record(self) -> str:
        """All that was taken since `start_record`."""
        return "".join(self._record)

    def take(self, count: int) -> str:
        """Remove the next `count` characters, which have arrived."""
        taken, self.held = self.held[:count], self.held[count:]
        self._record.append(taken)
        return taken

    def more(self) -> Steps[bool]:
        """Wait until more text has arrived; False when none will."""
        size = len(self.held)
        while len(self.held) == size:
            if self.ended:
                return False
            yield None
        return True

    def peek(self) -> Steps[str]:
        """The next character, not taken; empty at the end."""
        while not self.held:
            if not (yield from self.more()):
                return ""
        return self.held[0]

    def skip_space(self) -> Steps[None]:
        """Take white space."""
        while (yield from self.peek()).isspace():
            self.take(len(self.held) - len(self.held.lstrip()))

    def at(self, marks: Sequence[str]) -> Steps[str | None]:
        """Take the mark that stands here and return it; None where there is none.

        A mark that the end of the text cuts is taken, too, but is none.
        """
        while True:
            here = [mark for mark in marks if self.held.startswith(mark)]
            open_ = any(mark.startswith(self.held) and mark not in here for mark in marks)
            if here and not open_:
                longest = max(here, key=len)
                self.take(len(longest))
                return longest
            if not open_ or not (yield from self.more()):
                if here:
                    return self.take(len(max(here, key=len)))
                if open_:
                    self.take(len(self.held))
                return None

    def expect(self, mark: str) -> Steps[None]:
        """Take a mark that must stand here.

        Raises:
            Malformed: It does not.
        """
        if (yield from self.at((mark,))) is None:
            raise Malformed(f"{mark!r} is missing.")

    def word(self, stops: str) -> Steps[str]:
        """Take the characters before the next white space or one of `stops`; empty if none."""
        pieces: list[str] = []
        while (yield from self.peek()):
            ends = (at for at, mark in enumerate(self.held) if mark.isspace() or mark in stops)
            pieces.append(self.take(next(ends, len(self.held))))
            if self.held:
                break
        return "".join(pieces)

    def until(self, marks: Sequence[str]) -> Steps[tuple[str, str | None]]:
        """Take the text before the first of these marks, and the mark; None at the end."""
        pieces: list[str] = []
        mark = yield from self._pass(marks, pieces)
        return "".join(pieces), mark

    def stream_until(
        self, marks: Sequence[str], wrap: Callable[[str], Parsed], *, cut: bool = False
    ) -> Steps[str | None]:
        """As `until`, but yields the text as it arrives.

        Args:
            marks: What ends the text.
            wrap: Makes an event of a piece of it.
            cut: Whether what may begin a mark at the end of all text is taken, but not yielded.
        """
        pieces: list[str] = []
        return (yield from stream(self._pass(marks, pieces, cut=cut), pieces, wrap))

    def _pass(
        self, marks: Sequence[str], pieces: list[str], *, cut: bool = False
    ) -> Steps[str | None]:
        while True:
            found = [(at, -len(mark), mark) for mark in marks if (at := self.held.find(mark)) >= 0]
            tail = _open_tail(self.held, marks)
            if found:
                at, _, mark = min(found)
                # A longer mark that begins here or before may still be completed.
                if self.ended or len(self.held) - tail >= at + len(mark):
                    pieces.append(self.take(at))
                    return self.take(len(mark))
            elif not self.ended:
                pieces.append(self.take(len(self.held) - tail))
            if not (yield from self.more()) and not found:
                pieces.append(self.take(len(self.held) - (tail if cut else 0)))
                self.take(len(self.held))
                return None


def stream(steps: Steps[T], pieces: list[str], wrap: Callable[[str], Parsed]) -> Steps[T]:
    """Run a reader that appends to `pieces`, and yield these as they come."""
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            if text := "".join(pieces):
                yield wrap(text)
            result: T = stop.value
            return result
        except Malformed:
            if text := "".join(pieces):
                yield wrap(text)
            raise
        if text := "".join(pieces):
            pieces.clear()
            yield wrap(text)
        yield step


def _open_tail(held: str, marks: Sequence[str]) -> int:
    """Length of the longest tail that may be the beginning of a mark."""
    longest = min(len(held), max((len(mark) for mark in marks), default=1) - 1)
    return next(
        (n for n in range(longest, 0, -1) if any(mark.startswith(held[-n:]) for mark in marks)), 0
    )
