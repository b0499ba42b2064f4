"""Separates calls of functions from text, in text that arrives in pieces.

Knows no dialect: a `Dialect` says where calls begin and reads them. The same text gives the same
events however it is cut. White space around calls belongs to nobody.
"""

from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Numbering
from mtplx_engine.chat.scanning import Malformed, Parsed, Source, Steps
from mtplx_engine.events import CallBroken, CallEnded, CallReport, TextDelta
from mtplx_engine.tools import Tool


class CallReader:
    """Reads one answer.

    Attributes:
        complete: Calls that can be run.
        cut: Whether the end of the text left a call incomplete, or what may have become one.
    """

    def __init__(self, dialect: Dialect, tools: Sequence[Tool], most: int | None = None) -> None:
        """Begin to read.

        Args:
            dialect: How calls are written.
            tools: What may be called.
            most: Calls after so many are dropped; None: none are.
        """
        self.complete = 0
        self.cut = False
        self._most = most
        self._broken = 0
        self._dialect = dialect
        self._tools = {tool.name: tool for tool in tools}
        self._source = Source()
        self._calls = Numbering()
        self._space = ""  # before what comes next: of the text, unless that is a call
        self._trim = False  # drop white space until something visible comes
        self._limited = False
        self._steps = self._read()

    def feed(self, text: str) -> list[Parsed]:
        """Take more text and return what of it is settled."""
        self._source.held += text
        return self._run()

    def close(self, *, limited: bool) -> list[Parsed]:
        """The text has ended, by a limit or by itself; return what was held back."""
        held = self._source.held
        # What may have become the mark of a call is shown as text, but it was cut all the same.
        self.cut = (
            limited and bool(held) and any(each.startswith(held) for each in self._dialect.openers)
        )
        self._source.ended, self._limited = True, limited
        return self._run()

    def _run(self) -> list[Parsed]:
        events: list[Parsed] = []
        for step in self._steps:
            if step is None:
                break
            if isinstance(step, CallEnded):
                self._source.start_record()
                self._space, self._trim = "", True
            if self._counts(step):
                events.append(step)
                self.complete += isinstance(step, CallEnded)
                self._broken += isinstance(step, CallBroken)
        return events

    def _counts(self, step: Parsed) -> bool:
        if isinstance(step, TextDelta):
            return bool(step.text)
        return self._most is None or step.index < self._most

    def report(self) -> CallReport:
        """What became of the calls so far."""
        dropped = 0 if self._most is None else max(0, self._calls.count - self._most)
        return CallReport(self._dialect.name, self.complete, self._broken, dropped)

    def _read(self) -> Steps[None]:
        openers, source = self._dialect.openers, self._source
        if self._dialect.bare:
            source.start_record()
            yield from source.skip_space()
            self._space = source.record
            source.start_record()
            opener = yield from source.at(openers)
            if opener is not None:
                yield from self._read_section(opener)
            else:
                yield self._text(source.record)
            openers = ()
        while (opener := (yield from source.stream_until(openers, self._text))) is not None:
            yield from self._read_section(opener)
        if self._space:
            yield TextDelta(self._space)

    def _read_section(self, opener: str) -> Steps[None]:
        source, calls = self._source, self._calls
        source.start_record(opener)
        try:
            yield from self._dialect.read(source, opener, calls, self._tools)
        except Malformed:
            yield from self._give_up()
        else:
            self._space, self._trim = "", True

    def _give_up(self) -> Steps[None]:
        """Show the text of a call that is none, unless the call would be dropped anyhow."""
        source, calls = self._source, self._calls
        index = calls.count if calls.open is None else calls.open
        if self._most is not None and index >= self._most:
            self._space, calls.open = "", None
            return
        self.cut = source.ended and not source.held
        broken, calls.open = calls.open, None
        if broken is not None:
            yield CallBroken(broken)
            if self.cut and self._limited:
                self._space = ""
                return
        yield self._text(source.record)

    def _text(self, text: str) -> TextDelta:
        text = self._space + text
        if self._trim:
            text = text.lstrip()
        visible = text.rstrip()
        self._space = text[len(visible) :]
        self._trim = self._trim and not visible
        return TextDelta(visible)
