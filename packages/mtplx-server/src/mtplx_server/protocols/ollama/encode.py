"""From the engine's events to Ollama's replies, in one piece or as a stream of lines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, assert_never
from uuid import uuid4

from mtplx_client.wire.chat import TokenLogprob
from mtplx_client.wire.ollama import (
    OllamaCall,
    OllamaCalled,
    OllamaChatReply,
    OllamaGenerateReply,
    OllamaReply,
    OllamaReplyMessage,
)
from mtplx_engine.events import (
    CallBroken,
    CallDelta,
    CallEnded,
    CallStarted,
    ChatResult,
    Event,
    Finished,
    PrefillProgress,
    PromptScored,
    ReasoningDelta,
    Started,
    TextDelta,
    TokensScored,
)
from mtplx_server.errors import Problem
from mtplx_server.protocols.arguments import values
from mtplx_server.protocols.base import Frame
from mtplx_server.protocols.ollama.failing import error_reply
from mtplx_server.protocols.openai_logprobs import chat_logprob
from mtplx_server.protocols.report import Asked, report

_NS = 1_000_000_000


class Line(Protocol):
    """Writes one line, or a whole answer, of one of the two kinds."""

    def __call__(
        self,
        model: str,
        text: str = "",
        thoughts: str = "",
        calls: Sequence[OllamaCall] = (),
        **fields: Any,
    ) -> OllamaReply:
        """The model's id, what it says, and further fields."""


def chat_line(
    model: str,
    text: str = "",
    thoughts: str = "",
    calls: Sequence[OllamaCall] = (),
    **fields: Any,
) -> OllamaReply:
    """A line of `/api/chat`."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if thoughts:
        message["thinking"] = thoughts
    if calls:
        message["tool_calls"] = list(calls)
    said = OllamaReplyMessage(**message)
    return OllamaChatReply(model=model, created_at=_now(), message=said, **fields)


def generate_line(
    model: str,
    text: str = "",
    thoughts: str = "",
    calls: Sequence[OllamaCall] = (),
    **fields: Any,
) -> OllamaReply:
    """A line of `/api/generate`, where nothing can be called."""
    assert not calls
    if thoughts:
        fields["thinking"] = thoughts
    return OllamaGenerateReply(model=model, created_at=_now(), response=text, **fields)


@dataclass(frozen=True, slots=True)
class AnswerEncoder:
    """Writes the answer to one request.

    Attributes:
        asked: What the report tells of the request.
        line: Writes one kind of replies.
    """

    asked: Asked
    line: Line

    def reply(self, results: Sequence[ChatResult]) -> OllamaReply:
        """The answer, whole."""
        (result,) = results
        whole = [call for call in result.calls if call.complete]
        calls = [_call(at, call.name, call.arguments) for at, call in enumerate(whole)]
        fields = end(result.finished, self.asked)
        if result.scores:
            fields["logprobs"] = [chat_logprob(each) for each in result.scores]
        return self.line(self.asked.model, result.text, result.reasoning, calls, **fields)

    def stream(self) -> "AnswerStream":
        """A writer of the streamed answer."""
        return AnswerStream(self.asked, self.line)


@dataclass(slots=True)
class _Unfinished:
    """A call that is being written."""

    name: str
    arguments: str = ""


@dataclass(slots=True)
class AnswerStream:
    """Writes a streamed answer: what is new in each line, then how it ended.

    Attributes:
        asked: What the report tells of the request.
        line: Writes one kind of replies.
    """

    asked: Asked
    line: Line
    _calls: dict[int, _Unfinished] = field(default_factory=dict)
    _shown: int = 0
    _scores: list[TokenLogprob] = field(default_factory=list)

    def open(self, _: Sequence[Started]) -> list[Frame]:
        """Nothing yet."""
        return []

    def feed(self, _: int, event: Event) -> list[Frame]:
        """The lines that an event makes."""
        match event:
            case TextDelta(text):
                return [self._write(text)]
            case ReasoningDelta(text):
                return [self._write("", text)]
            case CallStarted() | CallDelta() | CallEnded() | CallBroken():
                return self._feed_call(event)
            case TokensScored(tokens):
                self._scores += map(chat_logprob, tokens)
                return []
            case Finished():
                return [self._write("", **end(event, self.asked))]
            case Started() | PrefillProgress() | PromptScored():
                return []
            case _:
                assert_never(event)

    def idle(self) -> list[Frame]:
        """A line that says nothing new, as lines know no comments."""
        return [Frame(self.line(self.asked.model, done=False).to_json())]

    def close(self) -> list[Frame]:
        """Nothing: the last line came with the end of the answer."""
        return []

    def fail(self, problem: Problem) -> list[Frame]:
        """The error."""
        return [Frame(error_reply(problem, self.asked.request_id).to_json())]

    def _feed_call(self, event: CallStarted | CallDelta | CallEnded | CallBroken) -> list[Frame]:
        match event:
            case CallStarted(at, name):
                self._calls[at] = _Unfinished(name)
            case CallDelta(at, text):
                self._calls[at].arguments += text
            case CallBroken(at):
                del self._calls[at]
            case CallEnded(at):
                made = self._calls.pop(at)
                call = _call(self._shown, made.name, made.arguments)
                self._shown += 1
                return [self._write("", "", [call])]
        return []

    def _write(
        self, text: str, thoughts: str = "", calls: Sequence[OllamaCall] = (), **last: Any
    ) -> Frame:
        fields: dict[str, Any] = last or {"done": False}
        if self._scores:
            fields["logprobs"], self._scores = self._scores, []
        return Frame(self.line(self.asked.model, text, thoughts, calls, **fields).to_json())


def end(finished: Finished, asked: Asked) -> dict[str, Any]:
    """The fields at the end of an answer."""
    statistics, times = report([finished], asked), finished.timings
    total_s = times.queue_s + times.prefill_s + times.decode_s
    return {
        "done": True,
        "done_reason": "length" if finished.reason == "length" else "stop",
        "total_duration": round(total_s * _NS),
        "load_duration": 0,
        "prompt_eval_count": statistics.prompt_tokens,
        "prompt_eval_duration": round(times.prefill_s * _NS),
        "eval_count": statistics.completion_tokens,
        "eval_duration": round(times.decode_s * _NS),
        "mtplx": statistics,
    }


def _call(at: int, name: str, arguments: str) -> OllamaCall:
    called = OllamaCalled(index=at, name=name, arguments=values(arguments))
    return OllamaCall(id=f"call_{uuid4().hex[:24]}", function=called)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
