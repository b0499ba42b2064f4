"""What a protocol is made of: how requests are read and how answers are written.

A protocol is a list of endpoints and an error envelope. An endpoint either generates (one
`ChatRequest` in, one stream of `Event`s out) or looks something up. The unstreamed answer is
written from the folded events, the streamed one event by event; both must say the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from mtplx_client.wire._base import WireReply, WireRequest
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

    def feed(self, event: Event) -> list[Frame]:
        """What an event says; may be nothing."""

    def close(self) -> list[Frame]:
        """What comes last when nothing failed."""

    def fail(self, problem: Problem) -> list[Frame]:
        """What comes last when the generation failed after `open`."""


class Encoder(Protocol):
    """Writes the answer to one request, in one piece or as a stream."""

    def reply(self, result: ChatResult) -> WireReply:
        """The whole answer."""

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
    """A request in the engine's vocabulary, and how to write its answer."""

    request: ChatRequest
    stream: bool
    encoder: Encoder


@dataclass(frozen=True, slots=True)
class Generate:
    """A POST endpoint that runs the model.

    Attributes:
        path: Where it lives.
        wire: Type of the body.
        decode: Turns (body, server, request id) into a request.
    """

    path: str
    wire: type[WireRequest]
    decode: Callable[[Any, Served, str], Decoded]


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
        answer: Turns (snapshot, rest of the path or "") into status and body.
    """

    path: str
    answer: Callable[[Snapshot, str], tuple[int, WireReply]]


@dataclass(frozen=True, slots=True)
class ApiProtocol:
    """One API that clients speak.

    Attributes:
        name: A short name, unique among the protocols.
        endpoints: What it offers.
        error: Renders a failure that is answered with an HTTP status.
    """

    name: str
    endpoints: tuple[Generate | Lookup, ...]
    error: Callable[[Problem], WireReply]
