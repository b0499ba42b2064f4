"""From the engine's events to OpenAI's completions, in one piece or as a stream of chunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from mtplx_client.wire.completions import Completion, CompletionChoice
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
from mtplx_server.protocols.base import Frame
from mtplx_server.protocols.openai_completions.scores import Scores
from mtplx_server.protocols.openai_error import error_reply
from mtplx_server.protocols.openai_report import Asked, report, usage

_DONE = Frame("[DONE]")


@dataclass(frozen=True, slots=True)
class CompletionEncoder:
    """Writes the answers to one request.

    Attributes:
        id: Id of the reply.
        created: Unix time of the request.
        include_usage: Whether a stream ends with token counts.
        scored: Whether log-probabilities were asked for.
        answers: How many there are going to be, to all prompts.
        asked: What the report tells of the request.
    """

    id: str
    created: int
    include_usage: bool
    scored: bool
    answers: int
    asked: Asked

    def reply(self, results: Sequence[ChatResult]) -> Completion:
        """All answers, whole."""
        finished = [result.finished for result in results]
        return Completion(
            **self.head(),
            choices=[self._choice(at, result) for at, result in enumerate(results)],
            usage=usage(finished, self.asked.choices),
            mtplx=report(finished, self.asked),
        )

    def stream(self) -> "CompletionStream":
        """A writer of the streamed answers."""
        return CompletionStream(self)

    def head(self) -> dict[str, Any]:
        """What every reply and every chunk begins with."""
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.asked.model,
        }

    def _choice(self, at: int, result: ChatResult) -> CompletionChoice:
        scores = Scores()
        text = result.text
        if result.echo is not None:
            text = result.echo.text + text
            scores.begin_prompt(result.echo)
            scores.add(result.prompt_scores)
        scores.add(result.scores)
        return CompletionChoice(
            text=text,
            index=at,
            logprobs=scores.take() if self.scored else None,
            finish_reason=result.finished.reason,
        )


class CompletionStream:
    """Writes streamed answers: pieces of text, finish, usage if asked for, `[DONE]`."""

    def __init__(self, encoder: CompletionEncoder) -> None:
        self._encoder = encoder
        self._head = encoder.head()
        # With include_usage each chunk has the key, and only the extra chunk has the counts.
        self._no_usage: dict[str, Any] = {"usage": None} if encoder.include_usage else {}
        self._scores: dict[int, Scores] = {}
        self._finished: dict[int, Finished] = {}

    def open(self) -> list[Frame]:
        """Nothing: the first text comes first."""
        return []

    def feed(self, choice: int, event: Event) -> list[Frame]:
        """The chunks that an event makes."""
        scores = self._scores.setdefault(choice, Scores())
        match event:
            case Started():
                if event.echo is None:
                    return []
                scores.begin_prompt(event.echo)
                return [self._chunk(choice, event.echo.text)]
            case PromptScored(tokens) | TokensScored(tokens):
                scores.add(tokens)
                return []
            case TextDelta(text) | ReasoningDelta(text):
                return [self._chunk(choice, text)]
            case Finished():
                return self._finish(choice, event)
            case PrefillProgress() | CallStarted() | CallDelta() | CallEnded() | CallBroken():
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
        encoder = self._encoder
        everything = [self._finished[at] for at in sorted(self._finished)]
        over = len(everything) == encoder.answers
        if over:
            last["mtplx"] = report(everything, encoder.asked)
        frames = [self._chunk(choice, "", finish_reason=finished.reason, **last)]
        if over and encoder.include_usage:
            counts = usage(everything, encoder.asked.choices)
            chunk = Completion(**self._head, choices=[], usage=counts)
            frames.append(Frame(chunk.to_json()))
        return frames

    def _chunk(
        self, choice: int, text: str, finish_reason: str | None = None, **last: Any
    ) -> Frame:
        scores = self._scores[choice]
        part = CompletionChoice(
            text=text,
            index=choice,
            logprobs=scores.take() if self._encoder.scored and scores.ready else None,
            finish_reason=finish_reason,
        )
        chunk = Completion(**self._head, choices=[part], **self._no_usage, **last)
        return Frame(chunk.to_json())
