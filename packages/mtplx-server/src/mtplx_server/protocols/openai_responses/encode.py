"""From the engine's answer to a response, in one piece."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mtplx_client.wire.responses_output import Response
from mtplx_engine.events import (
    Call,
    CallBroken,
    CallDelta,
    CallEnded,
    CallStarted,
    ChatResult,
    Event,
    Part,
    TokensScored,
)
from mtplx_server.protocols.openai_responses.heading import Heading
from mtplx_server.protocols.openai_responses.stream import ResponsesStream


@dataclass(frozen=True, slots=True)
class ResponsesEncoder:
    """Writes the answer to one request."""

    heading: Heading

    def reply(self, results: Sequence[ChatResult]) -> Response:
        """The answer, whole: the items that a stream of it would have."""
        (result,) = results
        stream = self.stream()
        for event in (TokensScored(result.scores), *_events(result.parts), result.finished):
            stream.feed(0, event)
        return self.heading.ended(stream.output, result.finished)

    def stream(self) -> ResponsesStream:
        """A writer of the streamed answer."""
        return ResponsesStream(self.heading)


def _events(parts: Iterable[Part]) -> Iterator[Event]:
    """What was said, as it would be streamed in as few pieces as possible."""
    for at, part in enumerate(parts):
        if not isinstance(part, Call):
            yield part
            continue
        yield CallStarted(at, part.name)
        if part.arguments:
            yield CallDelta(at, part.arguments)
        yield CallEnded(at) if part.complete else CallBroken(at)
