"""The synchronous client: a thin shell around `calls`."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Self

import httpx

from mtplx_client import calls
from mtplx_client._opening import opening
from mtplx_client._sse import EventDecoder
from mtplx_client.calls import Call, Reply
from mtplx_client.errors import ConnectionFailed, StreamInterrupted
from mtplx_client.wire.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from mtplx_client.wire.completions import Completion, CompletionRequest
from mtplx_client.wire.health import Health
from mtplx_client.wire.models import ModelCard, ModelList

DEFAULT_URL = "http://127.0.0.1:8000"
# A long prompt is silent while it is read, so only connecting has a limit by default.
DEFAULT_TIMEOUT = httpx.Timeout(None, connect=5.0)


class Client:
    """Talks to one server. Close it, or use it in a `with` block."""

    def __init__(
        self, base_url: str = DEFAULT_URL, *, timeout: httpx.Timeout | float = DEFAULT_TIMEOUT
    ) -> None:
        with opening(base_url) as trusting:
            self._http = httpx.Client(base_url=base_url, timeout=timeout, trust_env=trusting)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def chat(self, request: ChatCompletionRequest) -> ChatCompletion:
        """The whole answer."""
        return self._send(calls.chat(request))

    def stream_chat(
        self, request: ChatCompletionRequest
    ) -> AbstractContextManager[Iterator[ChatCompletionChunk]]:
        """The answer in chunks; leaving the block early cancels the rest."""
        return self._stream(calls.chat_stream(request))

    def complete(self, request: CompletionRequest) -> Completion:
        """Whole continuations of a text."""
        return self._send(calls.complete(request))

    def stream_complete(
        self, request: CompletionRequest
    ) -> AbstractContextManager[Iterator[Completion]]:
        """Continuations in chunks; leaving the block early cancels the rest."""
        return self._stream(calls.complete_stream(request))

    def models(self) -> ModelList:
        """The models that the server serves."""
        return self._send(calls.models())

    def model(self, model_id: str) -> ModelCard:
        """One of them."""
        return self._send(calls.model(model_id))

    def health(self) -> Health:
        """State and load of the server."""
        return self._send(calls.health())

    @contextmanager
    def _stream(self, call: Call[Reply]) -> Iterator[Iterator[Reply]]:
        try:
            with self._http.stream(
                call.method, call.path, content=call.content, headers=call.headers
            ) as response:
                if response.status_code >= 400:
                    call.check(response.status_code, response.headers, response.read())
                yield _chunks(call, response)
        except httpx.RequestError as error:
            raise ConnectionFailed(str(error)) from error

    def _send(self, call: Call[Reply]) -> Reply:
        try:
            response = self._http.request(
                call.method, call.path, content=call.content, headers=call.headers
            )
        except httpx.RequestError as error:
            raise ConnectionFailed(str(error)) from error
        return call.parse(response.status_code, response.headers, response.content)


def _chunks(call: Call[Reply], response: httpx.Response) -> Iterator[Reply]:
    decoder = EventDecoder()
    for piece in response.iter_bytes():
        for event in decoder.feed(piece):
            chunk = call.parse_event(event)
            if chunk is None:
                return
            yield chunk
    raise StreamInterrupted("The stream ended before its last chunk.")
