"""From the engine's events to OpenAI's completions, in one piece or as a stream of chunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from mtplx_client.wire.completions import Completion, CompletionChoice
from mtplx_engine.events import (
    CallBroken,
    CallDelta,
    CallEnded,
    CallStarted,
    ChatResult,
    Echo,
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
from mtplx_server.protocols.openai_stream import Chunks, Heading

_KIND = "text_completion"


@dataclass(frozen=True, slots=True)
class CompletionEncoder:
    """Writes the answers to one request."""

    heading: Heading

    def reply(self, results: Sequence[ChatResult]) -> Completion:
        """All answers, whole."""
        return Completion(
            **self.heading.fields(_KIND),
            choices=[self._choice(at, result) for at, result in enumerate(results)],
            **self.heading.counts([result.finished for result in results]),
        )

    def stream(self) -> "CompletionStream":
        """A writer of the streamed answers."""
        return CompletionStream(self.heading)

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
            logprobs=scores.take() if self.heading.scored else None,
            finish_reason=result.finished.reason,
        )


class CompletionStream:
    """Writes streamed answers: pieces of text, finish, usage if asked for, `[DONE]`."""

    def __init__(self, heading: Heading) -> None:
        self._chunks = Chunks(heading, _KIND, Completion)
        self._scored = heading.scored
        self._scores: dict[int, Scores] = {}

    def open(self, started: Sequence[Started]) -> list[Frame]:
        """The prompts, where they are asked for."""
        echoes = ((at, each.echo) for at, each in enumerate(started))
        return [self._begin(at, echo) for at, echo in echoes if echo is not None]

    def feed(self, choice: int, event: Event) -> list[Frame]:
        """The chunks that an event makes."""
        scores = self._scores.setdefault(choice, Scores())
        match event:
            case PromptScored(tokens) | TokensScored(tokens):
                scores.add(tokens)
                return []
            case TextDelta(text) | ReasoningDelta(text):
                return [self._chunk(choice, text)]
            case Finished(reason=reason):
                return self._chunks.finish(choice, self._part(choice, "", reason), event)
            case Started() | PrefillProgress():
                return []
            case CallStarted() | CallDelta() | CallEnded() | CallBroken():
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

    def _begin(self, choice: int, echo: Echo) -> Frame:
        self._scores.setdefault(choice, Scores()).begin_prompt(echo)
        return self._chunk(choice, echo.text)

    def _chunk(self, choice: int, text: str) -> Frame:
        return self._chunks.write(self._part(choice, text, None))

    def _part(self, choice: int, text: str, reason: str | None) -> CompletionChoice:
        scores = self._scores[choice]
        logprobs = scores.take() if self._scored and scores.ready else None
        return CompletionChoice(text=text, index=choice, logprobs=logprobs, finish_reason=reason)
