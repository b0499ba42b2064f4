"""From the text of an answer to events: thoughts, text, calls of functions."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mtplx_engine.chat.calls import CallReader
from mtplx_engine.chat.dialects.base import Dialect
from mtplx_engine.chat.reasoning import ReasoningSplitter, ReasoningStart
from mtplx_engine.chat.scanning import Parsed
from mtplx_engine.events import CallReport, FinishReason, ReasoningDelta, TextDelta
from mtplx_engine.tools import Tool


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How the text of an answer is to be read.

    Attributes:
        reasoning: How the answer begins; None where the model has no reasoning.
        dialect: How calls are written; None: nothing is a call.
        tools: What may be called.
        parallel: Whether more than the first call counts.
    """

    reasoning: ReasoningStart | None = None
    dialect: Dialect | None = None
    tools: tuple[Tool, ...] = ()
    parallel: bool = True

    def enforced(self) -> "AnswerForm":
        """The same under a grammar, which has thoughts at the beginning and nowhere else."""
        if self.reasoning is None:
            return self
        return replace(self, reasoning=replace(self.reasoning, once=True))


class AnswerParser:
    """Reads one answer; the same text gives the same events however it is cut."""

    def __init__(self, form: AnswerForm) -> None:
        self._splitter = ReasoningSplitter(form.reasoning) if form.reasoning else None
        most = None if form.parallel else 1
        self._calls = CallReader(form.dialect, form.tools, most) if form.dialect else None

    @property
    def thinking(self) -> bool:
        """Whether what comes next is a thought."""
        return self._splitter is not None and self._splitter.reasoning

    def feed(self, text: str) -> list[Parsed | ReasoningDelta]:
        """Take more text and return what of it is settled."""
        if self._splitter is None:
            return list(self._answer([TextDelta(text)] if text else []))
        return list(self._answer(self._splitter.feed(text)))

    def close(self, *, limited: bool) -> list[Parsed | ReasoningDelta]:
        """The text has ended, by a limit or by itself; return what was held back."""
        last = self._answer(self._splitter.close() if self._splitter else [])
        return [*last, *(self._calls.close(limited=limited) if self._calls else [])]

    def reason(self, reason: FinishReason) -> FinishReason:
        """Why the answer ended, now that it is known what is in it."""
        if self._calls is None or not self._calls.complete:
            return reason
        return "length" if reason == "length" and self._calls.cut else "tool_calls"

    def report(self) -> CallReport | None:
        """What became of calls; None where there could be none."""
        return self._calls.report() if self._calls else None

    def _answer(
        self, deltas: Iterable[ReasoningDelta | TextDelta]
    ) -> Iterable[Parsed | ReasoningDelta]:
        for delta in deltas:
            if isinstance(delta, TextDelta) and self._calls is not None:
                yield from self._calls.feed(delta.text)
            else:
                yield delta
