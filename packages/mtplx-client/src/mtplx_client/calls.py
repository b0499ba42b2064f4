"""What can be asked of a server, without sending it: method, path, body and type of the reply.

The synchronous and the asynchronous client are two thin shells around these values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from mtplx_client._sse import ServerEvent
from mtplx_client.errors import InvalidReply, StreamFailed, status_error
from mtplx_client.wire.base import WireReply, WireRequest
from mtplx_client.wire.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from mtplx_client.wire.completions import Completion, CompletionRequest
from mtplx_client.wire.error import ErrorReply
from mtplx_client.wire.health import Health
from mtplx_client.wire.models import ModelCard, ModelList

Reply = TypeVar("Reply", bound=WireReply)

_DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Call(Generic[Reply]):
    """One exchange.

    Attributes:
        method: HTTP method.
        path: Path below the server's base URL.
        reply: Type of the reply; of each chunk when the answer is streamed.
        body: What to send, or None.
        also_reply: Statuses of 400 or more whose body is a `reply` all the same.
    """

    method: str
    path: str
    reply: type[Reply]
    body: WireRequest | None = None
    also_reply: frozenset[int] = frozenset()

    @property
    def content(self) -> bytes | None:
        """The body's bytes; fields that were not set are left out."""
        if self.body is None:
            return None
        return self.body.model_dump_json(exclude_unset=True, by_alias=True).encode()

    @property
    def headers(self) -> dict[str, str]:
        """Headers that belong to the body."""
        return {} if self.body is None else {"content-type": "application/json"}

    def check(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Raise the error that the reply stands for, if it stands for one.

        Raises:
            StatusError: The status is 400 or more.
        """
        if status >= 400 and status not in self.also_reply:
            raise status_error(status, body, headers.get("x-request-id"))

    def parse(self, status: int, headers: Mapping[str, str], body: bytes) -> Reply:
        """Turn a whole answer into the reply.

        Raises:
            StatusError: The status is 400 or more.
            InvalidReply: The body is not a `reply`.
        """
        self.check(status, headers, body)
        return self._validate(body)

    def parse_event(self, event: ServerEvent) -> Reply | None:
        """Turn one event of a streamed answer into a chunk, or None at the end of the stream.

        Raises:
            StreamFailed: The server failed after it had begun to answer.
            InvalidReply: The event is not a chunk.
        """
        if event.data == _DONE:
            return None
        try:
            return self._validate(event.data)
        except InvalidReply as error:
            try:
                failure = ErrorReply.model_validate_json(event.data)
            except ValidationError:
                raise error from None
            raise StreamFailed(failure.error) from None

    def _validate(self, data: str | bytes) -> Reply:
        try:
            return self.reply.model_validate_json(data)
        except ValidationError as error:
            raise InvalidReply(f"{self.method} {self.path}: {error}") from error


def chat(request: ChatCompletionRequest) -> Call[ChatCompletion]:
    """Ask for an answer in one piece."""
    body = request.model_copy(update={"stream": False})
    return Call("POST", "/v1/chat/completions", ChatCompletion, body)


def chat_stream(request: ChatCompletionRequest) -> Call[ChatCompletionChunk]:
    """Ask for an answer in chunks."""
    body = request.model_copy(update={"stream": True})
    return Call("POST", "/v1/chat/completions", ChatCompletionChunk, body)


def complete(request: CompletionRequest) -> Call[Completion]:
    """Ask for continuations in one piece."""
    body = request.model_copy(update={"stream": False})
    return Call("POST", "/v1/completions", Completion, body)


def complete_stream(request: CompletionRequest) -> Call[Completion]:
    """Ask for continuations in chunks, which have the same shape."""
    body = request.model_copy(update={"stream": True})
    return Call("POST", "/v1/completions", Completion, body)


def models() -> Call[ModelList]:
    """List the models."""
    return Call("GET", "/v1/models", ModelList)


def model(model_id: str) -> Call[ModelCard]:
    """Describe one model."""
    return Call("GET", f"/v1/models/{quote(model_id, safe='')}", ModelCard)


def health() -> Call[Health]:
    """State and load; a server that is not healthy answers with 503 and the same body."""
    return Call("GET", "/health", Health, also_reply=frozenset({503}))
