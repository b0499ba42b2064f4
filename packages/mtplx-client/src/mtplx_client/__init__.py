"""Typed client of the mtplx server.

    from mtplx_client import ChatCompletionRequest, ChatMessage, Client

    with Client() as client:
        request = ChatCompletionRequest(messages=[ChatMessage(role="user", content="Hello")])
        print(client.chat(request).choices[0].message.content)

The HTTP library is imported when a client is first asked for, so that the wire types alone stay
light.
"""

from typing import TYPE_CHECKING, Any

from mtplx_client._version import __version__
from mtplx_client.errors import (
    ApiError,
    AuthenticationFailed,
    BadRequest,
    ClientError,
    ConnectionFailed,
    InternalServerError,
    InvalidReply,
    MethodNotAllowed,
    NotFound,
    PermissionDenied,
    RateLimited,
    RequestTooLarge,
    ServiceUnavailable,
    StatusError,
    StreamFailed,
    StreamInterrupted,
)
from mtplx_client.streams import accumulate
from mtplx_client.wire.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionRequest,
    ChatMessage,
)
from mtplx_client.wire.completions import Completion, CompletionRequest
from mtplx_client.wire.options import StreamOptions

if TYPE_CHECKING:
    from mtplx_client.async_client import AsyncClient
    from mtplx_client.client import Client

__all__ = [
    "ApiError",
    "AsyncClient",
    "AuthenticationFailed",
    "BadRequest",
    "ChatCompletion",
    "ChatCompletionChunk",
    "ChatCompletionRequest",
    "ChatMessage",
    "Client",
    "ClientError",
    "Completion",
    "CompletionRequest",
    "ConnectionFailed",
    "InternalServerError",
    "InvalidReply",
    "MethodNotAllowed",
    "NotFound",
    "PermissionDenied",
    "RateLimited",
    "RequestTooLarge",
    "ServiceUnavailable",
    "StatusError",
    "StreamFailed",
    "StreamInterrupted",
    "StreamOptions",
    "__version__",
    "accumulate",
]


def __getattr__(name: str) -> Any:
    if name == "Client":
        from mtplx_client.client import Client  # noqa: PLC0415 - see the module's docstring

        return Client
    if name == "AsyncClient":
        from mtplx_client.async_client import AsyncClient  # noqa: PLC0415

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
