"""The session cache for operators: what it holds, and forgetting it."""

from concurrent.futures import Future

from mtplx_client.wire.admin import CacheCleared, RamCard, SessionCard, SessionCleared, SessionList
from mtplx_client.wire.base import WireReply
from mtplx_client.wire.error import ErrorReply
from mtplx_engine.caching import Cleared, SessionInfo
from mtplx_engine.interface import ChatEngine
from mtplx_server.protocols.base import ApiProtocol, Command, Lookup, Snapshot, Visit
from mtplx_server.protocols.openai_error import error_reply
from mtplx_server.protocols.report import cache_report


def _sessions(snapshot: Snapshot, _: Visit) -> tuple[int, WireReply]:
    cache, ram = snapshot.cache, snapshot.cache.ram
    return 200, SessionList(
        sessions=[_card(each) for each in cache.sessions],
        count=len(cache.sessions),
        ram=RamCard(
            bytes=ram.bytes,
            limit=ram.limit,
            blocks=ram.blocks,
            evicted=ram.evicted,
            refused=ram.refused,
        ),
        trouble=cache.trouble,
    )


def _card(session: SessionInfo) -> SessionCard:
    return SessionCard(
        session_id=session.id,
        named=session.named,
        tokens=session.tokens,
        bytes=session.bytes,
        turns=session.turns,
        created=session.created,
        used=session.used,
        running=session.running,
        cache=None if session.restored is None else cache_report(session.restored),
    )


def _clear_session(engine: ChatEngine, session: str) -> Future[Cleared]:
    return engine.clear_session(session)


def _session_cleared(cleared: Cleared, session: str) -> WireReply:
    return SessionCleared(
        session_id=session,
        existed=cleared.sessions > 0,
        cleared_ram_bytes=cleared.ram_bytes,
    )


def _clear_cache(engine: ChatEngine, _: str) -> Future[Cleared]:
    return engine.clear_cache()


def _cache_cleared(cleared: Cleared, _: str) -> WireReply:
    return CacheCleared(sessions=cleared.sessions, cleared_ram_bytes=cleared.ram_bytes)


PROTOCOL = ApiProtocol(
    name="admin",
    endpoints=(
        Lookup("/admin/sessions", "List conversations that are kept", _sessions, (SessionList,)),
        Command(
            "/admin/sessions/<session_id:path>/clear",
            "Forget a conversation",
            _clear_session,
            _session_cleared,
            SessionCleared,
        ),
        Command(
            "/admin/cache/clear",
            "Forget all conversations",
            _clear_cache,
            _cache_cleared,
            CacheCleared,
        ),
    ),
    error=error_reply,
    envelope=ErrorReply,
    prefixes=("/admin/",),
)
