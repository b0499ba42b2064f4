"""What a protocol is made of: how requests are read and how answers are written.

A protocol is a list of endpoints and an error envelope. An endpoint generates (some `ChatRequest`s
in, streams of `Event`s out), counts tokens, acts, looks something up, or commands. The unstreamed
answer is written from the folded events, the streamed one event by event; both must say the same.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from mtplx_client.wire.base import WireReply, WireRequest
from mtplx_engine.caching import CacheStatus
from mtplx_engine.events import ChatResult, Event, Started
from mtplx_engine.info import EngineStatus, ModelInfo
from mtplx_engine.interface import ChatEngine
from mtplx_engine.request import ChatRequest
from mtplx_server.errors import Problem


class Frame(NamedTuple):
    """One message of a streamed answer, before it is framed for the wire.

    Attributes:
        data: JSON, or a word.
        event: Its kind, where the protocol names it outside of the data.
    """

    data: str
    event: str | None = None


class StreamEncoder(Protocol):
    """Writes one streamed answer. It is not used again after `close` or `fail`."""

    def open(self, started: Sequence[Started]) -> list[Frame]:
        """What comes first, as soon as the prompts are accepted; one `Started` for each answer."""

    def feed(self, choice: int, event: Event) -> list[Frame]:
        """What an event of one of the answers says; may be nothing."""

    def idle(self) -> list[Frame]:
        """What tells a client in a silence that more will come; nothing: a comment will do."""

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
        skip_hosted_tools: Whether tools that only a vendor's servers can run are left out of a
            request, where it would be refused for them.
    """

    model: ModelInfo
    strict_fields: bool = False
    strict_model: bool = False
    skip_hosted_tools: bool = False


@dataclass(frozen=True, slots=True)
class Decoded:
    """A request in the engine's vocabulary, and how to write its answers.

    Attributes:
        requests: What to generate; usually one, none where an answer needs no model.
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
        chunks: Types of a streamed answer's messages.
        framing: How these are told apart: as server-sent events, or one a line.
        end_mark: The word that ends a stream, where it is no JSON.
    """

    path: str
    summary: str
    wire: type[WireRequest]
    decode: Callable[[Any, Served, str], Decoded]
    reply: type[WireReply]
    chunks: tuple[type[WireReply], ...]
    framing: Literal["sse", "ndjson"] = "sse"
    end_mark: str | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """A POST endpoint that tells how many tokens a prompt has, without running the model.

    Attributes:
        path: Where it lives.
        summary: What it does, in a line.
        wire: Type of the body.
        decode: Turns (body, server) into the request whose prompt is counted.
        encode: Writes the count.
        reply: Type of what `encode` makes.
    """

    path: str
    summary: str
    wire: type[WireRequest]
    decode: Callable[[Any, Served], ChatRequest]
    encode: Callable[[int], WireReply]
    reply: type[WireReply]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an endpoint may see that answers at once: nothing here waits for the model.

    Attributes:
        model: What is being served.
        status: State and load.
        strict_model: Whether other model names are refused.
        cache: What the session cache holds.
    """

    model: ModelInfo
    status: EngineStatus
    strict_model: bool = False
    cache: CacheStatus = field(default_factory=CacheStatus)


@dataclass(frozen=True, slots=True)
class Action:
    """A POST endpoint that answers at once.

    Attributes:
        path: Where it lives.
        summary: What it does, in a line.
        wire: Type of the body.
        answer: Turns (body, snapshot) into the reply.
        reply: Type of that.
    """

    path: str
    summary: str
    wire: type[WireRequest]
    answer: Callable[[Any, Snapshot], WireReply]
    reply: type[WireReply]


@dataclass(frozen=True, slots=True)
class Visit:
    """What a lookup may know of the request.

    Attributes:
        rest: Of the path, see `Lookup.path`; or "".
        headers: By names in lower case.
    """

    rest: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A GET endpoint that answers at once.

    Attributes:
        path: Where it lives; a last segment `<name:path>` takes the rest of the path.
        summary: What it tells, in a line.
        answer: Turns (snapshot, visit) into status and body.
        replies: Types that the body may have.
        statuses: Those that come with such a body.
    """

    path: str
    summary: str
    answer: Callable[[Snapshot, Visit], tuple[int, WireReply]]
    replies: tuple[type[WireReply], ...]
    statuses: tuple[int, ...] = (200,)


@dataclass(frozen=True, slots=True)
class Command:
    """A POST endpoint without a body that has the engine do something and waits for it.

    Attributes:
        path: Where it lives; a segment `<name:path>` takes what stands in its place.
        summary: What it does, in a line.
        run: Turns (engine, what stands in the path) into what is waited for.
        encode: Writes (what came of it, what stands in the path).
        reply: Type of that.
    """

    path: str
    summary: str
    run: Callable[[ChatEngine, str], "Future[Any]"]
    encode: Callable[[Any, str], WireReply]
    reply: type[WireReply]


Endpoint = Generate | Count | Action | Lookup | Command


@dataclass(frozen=True, slots=True)
class ApiProtocol:
    """One API that clients speak.

    Attributes:
        name: A short name, unique among the protocols.
        endpoints: What it offers.
        error: Renders (failure, request id), for one that is answered with an HTTP status.
        envelope: Type of what `error` makes.
        prefixes: Paths that begin so are its own, also those that it does not have.
        header: Only its clients send this header, to whatever path.
    """

    name: str
    endpoints: tuple[Endpoint, ...]
    error: Callable[[Problem, str], WireReply]
    envelope: type[WireReply]
    prefixes: tuple[str, ...] = ()
    header: str | None = None
