"""From the engine's events to OpenAI's chat replies, in one piece or as a stream of chunks."""

from dataclasses import dataclass
from typing import Any, assert_never

from mtplx_client.wire.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatUsage,
    Choice,
    ChunkChoice,
    CompletionTokensDetails,
    Delta,
    PromptTokensDetails,
    ReplyMessage,
    Report,
)
from mtplx_engine.events import (
    ChatResult,
    Event,
    Finished,
    PrefillProgress,
    PromptScored,
    ReasoningDelta,
    Started,
    TextDelta,
    TokensScored,
    Usage,
)
from mtplx_server.errors import Problem
from mtplx_server.protocols.base import Frame
from mtplx_server.protocols.openai_error import error_reply

_DONE = Frame("[DONE]")


@dataclass(frozen=True, slots=True)
class ChatEncoder:
    """Writes the answer to one request.

    Attributes:
        id: Id of the answer.
        created: Unix time of the request.
        model: Id of the served model.
        request_id: The same as the `x-request-id` header.
        include_usage: Whether a stream ends with token counts.
        ignored_fields: Request fields that had no effect.
    """

    id: str
    created: int
    model: str
    request_id: str
    include_usage: bool
    ignored_fields: list[str]

    def reply(self, result: ChatResult) -> ChatCompletion:
        """The whole answer."""
        message: dict[str, Any] = {"role": "assistant", "content": result.text}
        if result.reasoning:
            message["reasoning_content"] = result.reasoning
        choice = Choice(
            index=0,
            message=ReplyMessage(**message),
            finish_reason=result.finished.reason,
            logprobs=None,
        )
        return ChatCompletion(
            id=self.id,
            object="chat.completion",
            created=self.created,
            model=self.model,
            choices=[choice],
            usage=_usage(result.finished.usage),
            mtplx=self.report(result.finished),
        )

    def stream(self) -> "ChatStream":
        """A fresh writer of the streamed answer."""
        return ChatStream(self)

    def report(self, finished: Finished) -> Report:
        """How the answer was made."""
        how, times = finished.speculation, finished.timings
        later_tokens = finished.usage.completion_tokens - 1
        speed = later_tokens / times.decode_s if later_tokens > 0 and times.decode_s > 0 else None
        return Report(
            request_id=self.request_id,
            mode=how.mode,
            depth=how.depth,
            acceptance=how.acceptance,
            rounds=how.rounds,
            drafted=list(how.drafted),
            accepted=list(how.accepted),
            copied=how.copied,
            copies_accepted=how.copies_accepted,
            forced=how.forced,
            queue_s=round(times.queue_s, 6),
            prefill_s=round(times.prefill_s, 6),
            decode_s=round(times.decode_s, 6),
            tokens_per_s=None if speed is None else round(speed, 3),
            peak_memory=finished.peak_memory,
            stop_sequence=finished.stop_sequence,
            ignored_fields=self.ignored_fields,
        )


class ChatStream:
    """Writes one streamed answer: role, deltas, finish, usage if asked for, `[DONE]`."""

    def __init__(self, encoder: ChatEncoder) -> None:
        self._encoder = encoder
        self._head: dict[str, Any] = {
            "id": encoder.id,
            "object": "chat.completion.chunk",
            "created": encoder.created,
            "model": encoder.model,
        }
        # With include_usage each chunk has the key, and only the extra chunk has the counts.
        self._no_usage: dict[str, Any] = {"usage": None} if encoder.include_usage else {}

    def open(self) -> list[Frame]:
        """The role, as soon as the prompt is accepted."""
        return [self._chunk(Delta(role="assistant", content=""))]

    def feed(self, event: Event) -> list[Frame]:
        """The chunks that an event makes."""
        match event:
            case TextDelta(text):
                return [self._chunk(Delta(content=text))]
            case ReasoningDelta(text):
                return [self._chunk(Delta(reasoning_content=text))]
            case Finished():
                return self._finish(event)
            case Started() | PrefillProgress() | PromptScored() | TokensScored():
                return []
            case _:
                assert_never(event)

    def close(self) -> list[Frame]:
        """The end mark."""
        return [_DONE]

    def fail(self, problem: Problem) -> list[Frame]:
        """The error, which ends the stream without an end mark."""
        return [Frame(error_reply(problem).to_json())]

    def _finish(self, finished: Finished) -> list[Frame]:
        report = self._encoder.report(finished)
        frames = [self._chunk(Delta(), finish_reason=finished.reason, mtplx=report)]
        if self._encoder.include_usage:
            usage = _usage(finished.usage)
            chunk = ChatCompletionChunk(**self._head, choices=[], usage=usage)
            frames.append(Frame(chunk.to_json()))
        return frames

    def _chunk(self, delta: Delta, finish_reason: str | None = None, **last: Any) -> Frame:
        choice = ChunkChoice(index=0, delta=delta, finish_reason=finish_reason, logprobs=None)
        chunk = ChatCompletionChunk(**self._head, choices=[choice], **self._no_usage, **last)
        return Frame(chunk.to_json())


def _usage(usage: Usage) -> ChatUsage:
    return ChatUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=0),
        completion_tokens_details=CompletionTokensDetails(reasoning_tokens=usage.reasoning_tokens),
    )
