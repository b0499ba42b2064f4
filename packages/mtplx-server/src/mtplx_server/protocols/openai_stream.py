"""What streamed answers of both OpenAI surfaces have in common: heads, ends, and how they fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mtplx_client.wire.base import WireReply
from mtplx_engine.events import Finished
from mtplx_server.errors import Problem
from mtplx_server.protocols.base import Frame
from mtplx_server.protocols.openai_error import error_reply
from mtplx_server.protocols.openai_usage import usage
from mtplx_server.protocols.report import Asked, count, report

END_MARK = "[DONE]"


@dataclass(frozen=True, slots=True)
class Heading:
    """What every reply to one request begins with.

    Attributes:
        id: Id of the reply.
        created: Unix time of the request.
        answers: How many there are going to be, to all prompts.
        include_usage: Whether a stream ends with token counts.
        scored: Whether log-probabilities were asked for.
        asked: What the report tells of the request.
    """

    id: str
    created: int
    answers: int
    include_usage: bool
    scored: bool
    asked: Asked

    def fields(self, kind: str) -> dict[str, Any]:
        """The fields, in a reply whose `object` is `kind`."""
        model = self.asked.model
        return {"id": self.id, "object": kind, "created": self.created, "model": model}

    def counts(self, finished: Sequence[Finished]) -> dict[str, Any]:
        """The fields at the end of a whole reply."""
        asked = self.asked
        return {
            "usage": usage(count(finished, asked.choices)),
            "mtplx": report(finished, asked),
        }


@dataclass(slots=True)
class Chunks:
    """Writes the chunks of some streamed answers.

    Attributes:
        heading: What each begins with.
        kind: Their `object`.
        chunk: Makes one, of fields.
    """

    heading: Heading
    kind: str
    chunk: Callable[..., WireReply]
    _finished: dict[int, Finished] = field(default_factory=dict)

    def write(self, part: WireReply, **last: Any) -> Frame:
        """A chunk with a part of one answer."""
        # With include_usage each chunk has the key, and only the extra chunk has the counts.
        no_usage = {"usage": None} if self.heading.include_usage else {}
        return self._frame(choices=[part], **no_usage, **last)

    def finish(self, choice: int, part: WireReply, finished: Finished) -> list[Frame]:
        """The last chunk of an answer; after that of the last answer the counts."""
        self._finished[choice] = finished
        if len(self._finished) < self.heading.answers:
            return [self.write(part)]
        counts = self.heading.counts([self._finished[at] for at in sorted(self._finished)])
        frames = [self.write(part, mtplx=counts["mtplx"])]
        if self.heading.include_usage:
            frames.append(self._frame(choices=[], usage=counts["usage"]))
        return frames

    def close(self) -> list[Frame]:
        """The end mark."""
        return [Frame(END_MARK)]

    def fail(self, problem: Problem) -> list[Frame]:
        """The error and the end mark."""
        request_id = self.heading.asked.request_id
        return [Frame(error_reply(problem, request_id).to_json()), Frame(END_MARK)]

    def _frame(self, **fields: Any) -> Frame:
        return Frame(self.chunk(**self.heading.fields(self.kind), **fields).to_json())
