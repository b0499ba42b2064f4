"""OpenAI's error envelope."""

from mtplx_client.wire.base import WireReply


class ErrorDetail(WireReply):
    """What went wrong.

    Attributes:
        message: For people.
        type: The kind of failure, for example `invalid_request_error`.
        param: The field at fault, as a path such as `messages[0].content`.
        code: A word for programs, for example `context_length_exceeded`.
    """

    message: str
    type: str | None = None
    param: str | None = None
    code: str | None = None


class ErrorReply(WireReply):
    """The body of every reply with a status of 400 or more."""

    error: ErrorDetail
