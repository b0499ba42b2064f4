"""From the engine's events to those of a streamed response.

One item is open at a time: text, thoughts or a call. It ends when something else begins.
"""

from collections.abc import Callable, Sequence
from typing import Any, assert_never

from mtplx_client.wire.base import WireReply
from mtplx_client.wire.chat import TokenLogprob
from mtplx_client.wire.responses_output import FailureEvent, ItemEvent, OutputItem, ResponseEvent
from mtplx_engine.events import (
    CallBroken,
    CallDelta,
    CallEnded,
    CallStarted,
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
from mtplx_server.protocols.openai_responses.failure import in_words
from mtplx_server.protocols.openai_responses.heading import Heading
from mtplx_server.protocols.openai_responses.open_items import (
    Calling,
    OpenItem,
    Saying,
    Step,
    Thinking,
)
from mtplx_server.protocols.openai_responses.toolbox import Known


class ResponsesStream:
    """Writes one streamed response.

    Attributes:
        output: Its items that have ended.
    """

    def __init__(self, heading: Heading) -> None:
        self._heading = heading
        self._written = 0
        self.output: list[OutputItem] = []
        self._open: OpenItem | None = None
        self._scores: list[TokenLogprob] = []

    def open(self, started: Sequence[Started]) -> list[Frame]:
        """The response without output, as soon as the prompt is accepted."""
        begun = self._heading.begun()
        kinds = ("response.created", "response.in_progress")
        return [self._frame(ResponseEvent, kind, response=begun) for kind in kinds]

    def feed(self, choice: int, event: Event) -> list[Frame]:
        """The frames that an event makes."""
        match event:
            case TextDelta(text):
                return self._more(Saying, text)
            case ReasoningDelta(text):
                return self._more(Thinking, text)
            case CallStarted(_, name):
                tool = self._heading.known.get(name, Known("function", name))
                return [*self._end(), *self._begin(Calling(tool))]
            case CallDelta(_, text):
                assert self._open is not None
                return self._frames(self._open.more(text, ()))
            case CallEnded():
                return self._end()
            case CallBroken():
                return self._end("incomplete")
            case TokensScored(tokens):
                self._scores += map(chat_logprob, tokens)
                return []
            case Finished():
                return self._finish(event)
            case Started() | PrefillProgress() | PromptScored():
                return []
            case _:
                assert_never(event)

    def idle(self) -> list[Frame]:
        """Nothing: a comment will do."""
        return []

    def close(self) -> list[Frame]:
        """Nothing: the last event has told that it is the last."""
        return []

    def fail(self, problem: Problem) -> list[Frame]:
        """The error, and the response with the items that were complete by then."""
        param = in_words(problem).param
        told = {"code": problem.code, "message": problem.message, "param": param}
        failed = self._heading.failed(self.output, problem)
        return [
            self._frame(FailureEvent, "error", **told),
            self._frame(ResponseEvent, "response.failed", response=failed),
        ]

    def _more(self, kind: type[Saying] | type[Thinking], text: str) -> list[Frame]:
        frames: list[Frame] = []
        if not isinstance(self._open, kind):
            frames = [*self._end(), *self._begin(kind(self._heading))]
        assert self._open is not None
        return [*frames, *self._frames(self._open.more(text, self._taken()))]

    def _finish(self, finished: Finished) -> list[Frame]:
        frames: list[Frame] = []
        if self._open is None and not self.output:
            frames += self._begin(Saying(self._heading))
        frames += self._end("incomplete" if finished.reason == "length" else "completed")
        response = self._heading.ended(self.output, finished)
        return [
            *frames,
            self._frame(ResponseEvent, f"response.{response.status}", response=response),
        ]

    def _begin(self, item: OpenItem) -> list[Frame]:
        self._open = item
        added = self._item("added", item.item("in_progress"))
        return [added, *self._frames(item.begin())]

    def _end(self, status: str = "completed") -> list[Frame]:
        """The end of the open item, if there is one."""
        if self._open is None:
            return []
        frames = self._frames(self._open.end(self._taken(), status))
        done = self._open.item(status)
        frames.append(self._item("done", done))
        self.output.append(done)
        self._open = None
        return frames

    def _taken(self) -> list[TokenLogprob]:
        """Scores for the open item: only messages take them, all since the message before."""
        if not isinstance(self._open, Saying):
            return []
        scores, self._scores = self._scores, []
        return scores

    def _item(self, what: str, item: OutputItem) -> Frame:
        kind, at = f"response.output_item.{what}", len(self.output)
        return self._frame(ItemEvent, kind, output_index=at, item=item)

    def _frames(self, steps: Sequence[Step]) -> list[Frame]:
        at = {"output_index": len(self.output)}
        return [self._frame(event, kind, **at, **fields) for event, kind, fields in steps]

    def _frame(self, event: Callable[..., WireReply], kind: str, **fields: Any) -> Frame:
        number, self._written = self._written, self._written + 1
        return Frame(event(type=kind, sequence_number=number, **fields).to_json(), kind)
