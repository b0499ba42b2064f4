"""The asynchronous client: a thin shell around `calls`."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Self

import httpx

from mtplx_client import calls
from mtplx_client._opening import opening
from mtplx_client._sse import EventDecoder
from mtplx_client.calls import Call, Reply
from mtplx_client.client import DEFAULT_TIMEOUT, DEFAULT_URL
from mtplx_client.errors import ConnectionFailed, StreamInterrupted
from mtplx_client.wire.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from mtplx_client.wire.completions import Completion, CompletionRequest
from mtplx_client.wire.health import Health
from mtplx_client.wire.models import ModelCard, ModelList


class AsyncClient:
    """Talks to one server. Close it, or use it in an `async with` block."""

    def __init__(
        self, base_url: str = DEFAULT_URL, *, timeout: httpx.Timeout | float = DEFAULT_TIMEOUT
    ) -> None:
        with opening(base_url) as trusting:
            self._http = httpx.AsyncClient(base_url=base_url, timeout=timeout, trust_env=trusting)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def chat(self, request: ChatCompletionRequest) -> ChatCompletion:
        """The whole answer."""
        return await self._send(calls.chat(request))

    def stream_chat(
        self, request: ChatCompletionRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[ChatCompletionChunk]]:
        """The answer in chunks; leaving the block early cancels the rest."""
        return self._stream(calls.chat_stream(request))

    async def complete(self, request: CompletionRequest) -> Completion:
        """Whole continuations of a text."""
        return await self._send(calls.complete(request))

    def stream_complete(
        self, request: CompletionRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[Completion]]:
        """Continuations in chunks; leaving the block early cancels the rest."""
        return self._stream(calls.complete_stream(request))

    async def models(self) -> ModelList:
        """The models that the server serves."""
        return await self._send(calls.models())

    async def model(self, model_id: str) -> ModelCard:
        """One of them."""
        return await self._send(calls.model(model_id))

    async def health(self) -> Health:
        """State and load of the server."""
        return await self._send(calls.health())

    @asynccontextmanager
    async def _stream(self, call: Call[Reply]) -> AsyncIterator[AsyncIterator[Reply]]:
        try:
            async with self._http.stream(
                call.method, call.path, content=call.content, headers=call.headers
            ) as response:
                if response.status_code >= 400:
                    call.check(response.status_code, response.headers, await response.aread())
                yield _chunks(call, response)
        except httpx.RequestError as error:
            raise ConnectionFailed(str(error)) from error

    async def _send(self, call: Call[Reply]) -> Reply:
        try:
            response = await self._http.request(
                call.method, call.path, content=call.content, headers=call.headers
            )
        except httpx.RequestError as error:
            raise ConnectionFailed(str(error)) from error
        return call.parse(response.status_code, response.headers, response.content)


async def _chunks(call: Call[Reply], response: httpx.Response) -> AsyncIterator[Reply]:
    decoder = EventDecoder()
    async for piece in response.aiter_bytes():
        for event in decoder.feed(piece):
            chunk = call.parse_event(event)
            if chunk is None:
                return
            yield chunk
    raise StreamInterrupted("The stream ended before its last chunk.")
