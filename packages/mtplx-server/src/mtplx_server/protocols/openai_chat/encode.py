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
from mtplx_server.protocols.openai_logprobs import chat_logprob
from mtplx_server.protocols.openai_stream import Chunks, Heading


@dataclass(frozen=True, slots=True)
class ChatEncoder:
    """Writes the answers to one request."""

    heading: Heading

    def reply(self, results: Sequence[ChatResult]) -> ChatCompletion:
        """All answers, whole."""
        return ChatCompletion(
            **self.heading.fields("chat.completion"),
            choices=[self._choice(at, result) for at, result in enumerate(results)],
            **self.heading.counts([result.finished for result in results]),
        )

    def stream(self) -> "ChatStream":
        """A writer of the streamed answers."""
        return ChatStream(self.heading)

    def _choice(self, at: int, result: ChatResult) -> Choice:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": result.text or (None if result.calls else ""),
        }
        if result.reasoning:
            message["reasoning_content"] = result.reasoning
        if result.calls:
            message["tool_calls"] = [_tool_call(call) for call in result.calls]
        scores = [chat_logprob(each) for each in result.scores]
        return Choice(
            index=at,
            message=ReplyMessage(**message),
            finish_reason=result.finished.reason,
            logprobs=_logprobs(scores) if self.heading.scored else None,
        )


class ChatStream:
    """Writes streamed answers: role, deltas, finish, usage if asked for, `[DONE]`."""

    def __init__(self, heading: Heading) -> None:
        self._chunks = Chunks(heading, "chat.completion.chunk", ChatCompletionChunk)
        self._scored = heading.scored
        self._scores: dict[int, list[TokenLogprob]] = {}

    def open(self, started: Sequence[Started]) -> list[Frame]:
        """The roles, as soon as the prompt is accepted."""
        role = Delta(role="assistant", content="")
        return [self._chunk(at, role) for at in range(len(started))]

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
            case Finished(reason=reason):
                return self._chunks.finish(choice, self._part(choice, Delta(), reason), event)
            case Started() | PrefillProgress() | PromptScored() | CallEnded() | CallBroken():
                return []
            case _:
                assert_never(event)

    def idle(self) -> list[Frame]:
        """Nothing: a comment will do."""
        return []

    def close(self) -> list[Frame]:
        """The end mark."""
        return self._chunks.close()

    def fail(self, problem: Problem) -> list[Frame]:
        """The error and the end mark."""
        return self._chunks.fail(problem)

    def _chunk(self, choice: int, delta: Delta) -> Frame:
        return self._chunks.write(self._part(choice, delta, None))

    def _part(self, choice: int, delta: Delta, reason: str | None) -> ChunkChoice:
        scores = self._scores.pop(choice, [])
        logprobs = _logprobs(scores) if scores and self._scored else None
        return ChunkChoice(index=choice, delta=delta, finish_reason=reason, logprobs=logprobs)


def _logprobs(scores: list[TokenLogprob]) -> ChoiceLogprobs:
    return ChoiceLogprobs(content=scores, refusal=None)


def _tool_call(call: Call) -> ToolCall:
    function = FunctionCall(name=call.name, arguments=call.arguments)
    return ToolCall(id=_call_id(), type="function", function=function)


def _call_id() -> str:
    return f"call_{uuid4().hex[:24]}"
