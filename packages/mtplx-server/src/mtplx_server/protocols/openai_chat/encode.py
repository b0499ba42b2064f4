"""From the engine's events to OpenAI's chat replies, in one piece or as a stream of chunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never
from uuid import uuid4

from mtplx_client.wire.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    Choice,
    ChoiceLogprobs,
    ChunkChoice,
    Delta,
    FunctionCall,
    ReplyMessage,
    TokenLogprob,
    ToolCall,
)
from mtplx_engine.events import (
    Call,
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
from mtplx_server.protocols.base import Frame
from mtplx_server.protocols.openai_error import error_reply
from mtplx_server.protocols.openai_logprobs import chat_logprob
from mtplx_server.protocols.openai_report import Asked, report, usage

_DONE = Frame("[DONE]")


@dataclass(frozen=True, slots=True)
class ChatEncoder:
    """Writes the answers to one request.

    Attributes:
        id: Id of the reply.
        created: Unix time of the request.
        include_usage: Whether a stream ends with token counts.
        scored: Whether log-probabilities were asked for.
        asked: What the report tells of the request.
    """

    id: str
    created: int
    include_usage: bool
    scored: bool
    asked: Asked

    def reply(self, results: Sequence[ChatResult]) -> ChatCompletion:
        """All answers, whole."""
        finished = [result.finished for result in results]
        return ChatCompletion(
            id=self.id,
            object="chat.completion",
            created=self.created,
            model=self.asked.model,
            choices=[self._choice(at, result) for at, result in enumerate(results)],
            usage=usage(finished, self.asked.choices),
            mtplx=report(finished, self.asked),
        )

    def stream(self) -> "ChatStream":
        """A writer of the streamed answers."""
        return ChatStream(self)

    def logprobs(self, scores: Sequence[TokenLogprob]) -> ChoiceLogprobs | None:
        """Scores of some tokens, if they were asked for."""
        return ChoiceLogprobs(content=list(scores), refusal=None) if self.scored else None

    def _choice(self, at: int, result: ChatResult) -> Choice:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": result.text or (None if result.calls else ""),
        }
        if result.reasoning:
            message["reasoning_content"] = result.reasoning
        if result.calls:
            message["tool_calls"] = [_tool_call(call) for call in result.calls]
        return Choice(
            index=at,
            message=ReplyMessage(**message),
            finish_reason=result.finished.reason,
            logprobs=self.logprobs([chat_logprob(each) for each in result.scores]),
        )


class ChatStream:
    """Writes streamed answers: role, deltas, finish, usage if asked for, `[DONE]`."""

    def __init__(self, encoder: ChatEncoder) -> None:
        self._encoder = encoder
        self._head: dict[str, Any] = {
            "id": encoder.id,
            "object": "chat.completion.chunk",
            "created": encoder.created,
            "model": encoder.asked.model,
        }
        # With include_usage each chunk has the key, and only the extra chunk has the counts.
        self._no_usage: dict[str, Any] = {"usage": None} if encoder.include_usage else {}
        self._scores: dict[int, list[TokenLogprob]] = {}
        self._finished: dict[int, Finished] = {}

    def open(self) -> list[Frame]:
        """The roles, as soon as the prompt is accepted."""
        role = Delta(role="assistant", content="")
        return [self._chunk(at, role) for at in range(self._encoder.asked.choices)]

    def feed(self, choice: int, event: Event) -> list[Frame]:
        """The chunks that an event makes."""
        match event:
            case TextDelta(text):
                return [self._chunk(choice, Delta(content=text))]
            case ReasoningDelta(text):
                return [self._chunk(choice, Delta(reasoning_content=text))]
            case CallStarted(at, name):
                function = FunctionCall(name=name, arguments="")
                call = ToolCall(index=at, id=_call_id(), type="function", function=function)
                return [self._chunk(choice, Delta(tool_calls=[call]))]
            case CallDelta(at, text):
                call = ToolCall(index=at, function=FunctionCall(arguments=text))
                return [self._chunk(choice, Delta(tool_calls=[call]))]
            case TokensScored(tokens):
                self._scores.setdefault(choice, []).extend(map(chat_logprob, tokens))
                return []
            case Finished():
                return self._finish(choice, event)
            case Started() | PrefillProgress() | PromptScored() | CallEnded() | CallBroken():
                return []
            case _:
                assert_never(event)

    def close(self) -> list[Frame]:
        """The end mark."""
        return [_DONE]

    def fail(self, problem: Problem) -> list[Frame]:
        """The error and the end mark."""
        return [Frame(error_reply(problem).to_json()), _DONE]

    def _finish(self, choice: int, finished: Finished) -> list[Frame]:
        self._finished[choice] = finished
        last: dict[str, Any] = {}
        asked = self._encoder.asked
        everything = [self._finished[at] for at in sorted(self._finished)]
        over = len(everything) == asked.choices
        if over:
            last["mtplx"] = report(everything, asked)
        frames = [self._chunk(choice, Delta(), finish_reason=finished.reason, **last)]
        if over and self._encoder.include_usage:
            counts = usage(everything, asked.choices)
            chunk = ChatCompletionChunk(**self._head, choices=[], usage=counts)
            frames.append(Frame(chunk.to_json()))
        return frames

    def _chunk(
        self, choice: int, delta: Delta, finish_reason: str | None = None, **last: Any
    ) -> Frame:
        scores = self._scores.pop(choice, [])
        part = ChunkChoice(
            index=choice,
            delta=delta,
            finish_reason=finish_reason,
            logprobs=self._encoder.logprobs(scores) if scores else None,
        )
        chunk = ChatCompletionChunk(**self._head, choices=[part], **self._no_usage, **last)
        return Frame(chunk.to_json())


def _tool_call(call: Call) -> ToolCall:
    function = FunctionCall(name=call.name, arguments=call.arguments)
    return ToolCall(id=_call_id(), type="function", function=function)


def _call_id() -> str:
    return f"call_{uuid4().hex[:24]}"
