"""What a protocol is made of: how requests are read and how answers are written.

A protocol is a list of endpoints and an error envelope. An endpoint either generates (some
`ChatRequest`s in, streams of `Event`s out) or looks something up. The unstreamed answer is
written from the folded events, the streamed one event by event; both must say the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from mtplx_client.wire.base import WireReply, WireRequest
from mtplx_engine.events import ChatResult, Event
from mtplx_engine.info import EngineStatus, ModelInfo
from mtplx_engine.request import ChatRequest
from mtplx_server.errors import Problem


class Frame(NamedTuple):
    """One message of a streamed answer, before it is framed for the wire."""

    data: str


class StreamEncoder(Protocol):
    """Writes one streamed answer. It is not used again after `close` or `fail`."""

    def open(self) -> list[Frame]:
        """What comes first, as soon as the prompt is accepted."""

    def feed(self, choice: int, event: Event) -> list[Frame]:
        """What an event of one of the answers says; may be nothing."""

    def close(self) -> list[Frame]:
        """What comes last when nothing failed and all answers have finished."""

    def fail(self, problem: Problem) -> list[Frame]:
        """What comes last when the generation failed after `open`."""


class Encoder(Protocol):
    """Writes the answers to one request, in one piece or as a stream."""

    def reply(self, results: Sequence[ChatResult]) -> WireReply:
        """All answers, whole."""

    def stream(self) -> StreamEncoder:
        """A fresh writer of the streamed answer."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a translator may know of the server.

    Attributes:
        model: What is being served.
        strict_fields: Whether fields without effect are refused.
        strict_model: Whether other model names are refused.
    """

    model: ModelInfo
    strict_fields: bool = False
    strict_model: bool = False


@dataclass(frozen=True, slots=True)
class Decoded:
    """A request in the engine's vocabulary, and how to write its answers.

    Attributes:
        requests: What to generate; usually one.
        choices: Answers to each of these. All answers are numbered in order: first those to the
            first request.
        stream: Whether they are sent as they are made.
        encoder: Writes them.
    """

    requests: tuple[ChatRequest, ...]
    choices: int
    stream: bool
    encoder: Encoder


@dataclass(frozen=True, slots=True)
class Generate:
    """A POST endpoint that runs the model.

    Attributes:
        path: Where it lives.
        summary: What it does, in a line.
        wire: Type of the body.
        decode: Turns (body, server, request id) into a request.
        reply: Type of a whole answer.
        chunk: Type of a streamed answer's messages.
    """

    path: str
    summary: str
    wire: type[WireRequest]
    decode: Callable[[Any, Served, str], Decoded]
    reply: type[WireReply]
    chunk: type[WireReply]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a lookup may see: nothing here waits for the model."""

    model: ModelInfo
    status: EngineStatus


@dataclass(frozen=True, slots=True)
class Lookup:
    """A GET endpoint that answers at once.

    Attributes:
        path: Where it lives; a last segment `<name:path>` takes the rest of the path.
        summary: What it tells, in a line.
        answer: Turns (snapshot, rest of the path or "") into status and body.
        reply: Type of the body.
        statuses: Those that come with such a body.
    """

    path: str
    summary: str
    answer: Callable[[Snapshot, str], tuple[int, WireReply]]
    reply: type[WireReply]
    statuses: tuple[int, ...] = (200,)


@dataclass(frozen=True, slots=True)
class ApiProtocol:
    """One API that clients speak.

    Attributes:
        name: A short name, unique among the protocols.
        endpoints: What it offers.
        error: Renders a failure that is answered with an HTTP status.
        envelope: Type of what `error` makes.
    """

    name: str
    endpoints: tuple[Generate | Lookup, ...]
    error: Callable[[Problem], WireReply]
    envelope: type[WireReply]
