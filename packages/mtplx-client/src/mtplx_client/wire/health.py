"""`GET /health`."""

from mtplx_client.wire.base import WireReply


class Health(WireReply):
    """State and load of a server.

    Attributes:
        status: `ok`, or `failed` or `closed` when no request can be served.
        reason: Why it is not ok; empty otherwise.
        model: Id of the served model.
        mtp: Whether drafting is on.
        mtp_reason: Why it is on or off.
        depth: Tokens drafted per round when a request does not say.
        backend: Device and linear-algebra library.
        quantization: How the weights are stored and computed with.
        version: Version of the server package.
        active: Requests being worked on.
        queued: Requests waiting.
        completed: Requests that ended since the start.
    """

    status: str
    reason: str = ""
    model: str = ""
    mtp: bool = False
    mtp_reason: str = ""
    depth: int = 0
    backend: str = ""
    quantization: str = ""
    version: str = ""
    active: int = 0
    queued: int = 0
    completed: int = 0
