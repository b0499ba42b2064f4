"""`GET /health` and `GET /`: is it there, what does it serve, how busy is it."""

from mtplx_client.wire.base import WireReply
from mtplx_client.wire.error import ErrorReply
from mtplx_client.wire.health import Health
from mtplx_server._version import __version__
from mtplx_server.protocols.base import ApiProtocol, Lookup, Snapshot, Visit
from mtplx_server.protocols.openai_error import error_reply


class Landing(WireReply):
    """What `GET /` says, for people who try the address in a browser."""

    name: str
    version: str
    model: str
    api: str


def _health(snapshot: Snapshot, _: Visit) -> tuple[int, Health]:
    model, status = snapshot.model, snapshot.status
    ready = status.state == "ready"
    health = Health(
        status="ok" if ready else status.state,
        reason=status.reason,
        model=model.id,
        mtp=model.mtp,
        mtp_reason=model.mtp_reason,
        depth=model.default_depth,
        backend=model.backend,
        quantization=model.quantization,
        version=__version__,
        active=status.active,
        queued=status.queued,
        completed=status.completed,
    )
    return (200 if ready else 503), health


def _landing(snapshot: Snapshot, _: Visit) -> tuple[int, Landing]:
    return 200, Landing(name="mtplx", version=__version__, model=snapshot.model.id, api="/v1")


PROTOCOL = ApiProtocol(
    name="health",
    endpoints=(
        Lookup("/health", "Tell state and load", _health, (Health,), statuses=(200, 503)),
        Lookup("/", "Tell what this is", _landing, (Landing,)),
    ),
    error=error_reply,
    envelope=ErrorReply,
)
