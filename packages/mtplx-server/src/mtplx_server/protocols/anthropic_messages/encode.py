"""From the engine's events to Anthropic's messages, in one piece or as a stream of events."""

from collections.abc import Sequence
from dataclasses import dataclass

from mtplx_client.wire.anthropic import MessageReply
from mtplx_engine.events import ChatResult
from mtplx_server.protocols.anthropic_messages.blocks import blocks
from mtplx_server.protocols.anthropic_messages.heading import Heading
from mtplx_server.protocols.anthropic_messages.stream import MessagesStream


@dataclass(frozen=True, slots=True)
class MessagesEncoder:
    """Writes the answer to one request."""

    heading: Heading

    def reply(self, results: Sequence[ChatResult]) -> MessageReply:
        """The answer, whole."""
        (result,) = results
        heading, finished = self.heading, result.finished
        return heading.message(
            blocks(result.parts), **heading.end(finished), **heading.counts(finished)
        )

    def stream(self) -> MessagesStream:
        """A writer of the streamed answer."""
        return MessagesStream(self.heading)
