"""Everything the client raises.

ClientError
├── ConnectionFailed          no answer: refused, timed out, cut off before the reply
├── InvalidReply              an answer that is not what the protocol says
├── StreamInterrupted         a stream ended before its last chunk
└── ApiError                  the server said no; `type`, `code` and `param` say why
    ├── StreamFailed          it said so inside a stream that had begun
    └── StatusError           it said so with an HTTP status
        ├── BadRequest              400
        ├── AuthenticationFailed    401
        ├── PermissionDenied        403
        ├── NotFound                404
        ├── MethodNotAllowed        405
        ├── RequestTooLarge         413
        ├── RateLimited             429
        ├── InternalServerError     500
        └── ServiceUnavailable      503
"""

from typing import ClassVar

from pydantic import ValidationError

from mtplx_client.wire.error import ErrorDetail, ErrorReply


class ClientError(Exception):
    """Base of all errors of this package."""


class ConnectionFailed(ClientError):
    """There was no answer; the cause is the HTTP library's exception."""


class InvalidReply(ClientError):
    """The answer cannot be understood; probably this is not an mtplx server."""


class StreamInterrupted(ClientError):
    """The connection ended before the stream did, so the answer is incomplete."""


class ApiError(ClientError):
    """The server refused or failed.

    Attributes:
        type: The kind of failure.
        code: A word for programs, or None.
        param: The request field at fault, or None.
    """

    def __init__(self, detail: ErrorDetail) -> None:
        super().__init__(detail.message)
        self.type = detail.type
        self.code = detail.code
        self.param = detail.param


class StreamFailed(ApiError):
    """The server failed after the stream had begun."""


class StatusError(ApiError):
    """The server answered with a status of 400 or more.

    Attributes:
        status: The HTTP status.
        request_id: The server's name for the request, to find it in the server's log.
    """

    expected_status: ClassVar[int | None] = None

    def __init__(self, detail: ErrorDetail, status: int, request_id: str | None) -> None:
        super().__init__(detail)
        self.status = status
        self.request_id = request_id


class BadRequest(StatusError):
    """A field of the request is wrong; `param` names it."""

    expected_status = 400


class AuthenticationFailed(StatusError):
    """The API key is missing or wrong."""

    expected_status = 401


class PermissionDenied(StatusError):
    """This caller may not do that."""

    expected_status = 403


class NotFound(StatusError):
    """There is no such path or model."""

    expected_status = 404


class MethodNotAllowed(StatusError):
    """The path exists, but not with this method."""

    expected_status = 405


class RequestTooLarge(StatusError):
    """The body is larger than the server reads."""

    expected_status = 413


class RateLimited(StatusError):
    """Too many requests."""

    expected_status = 429


class InternalServerError(StatusError):
    """The server failed on this request."""

    expected_status = 500


class ServiceUnavailable(StatusError):
    """The queue is full, or the engine has stopped."""

    expected_status = 503


_BY_STATUS = {kind.expected_status: kind for kind in StatusError.__subclasses__()}


def status_error(status: int, body: bytes, request_id: str | None) -> StatusError:
    """The exception for a reply with a status of 400 or more, whatever its body is."""
    try:
        detail = ErrorReply.model_validate_json(body).error
    except ValidationError:
        text = body[:200].decode("utf-8", errors="replace").strip()
        detail = ErrorDetail(message=text or f"The server answered with status {status}.")
    return _BY_STATUS.get(status, StatusError)(detail, status, request_id)
