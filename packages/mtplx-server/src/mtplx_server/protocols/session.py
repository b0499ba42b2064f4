"""Which conversation a request belongs to, and what the session cache may do for it.

Clients say it in different ways; none has to. Without a name the engine tells conversations apart
by how their prompts begin.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from mtplx_engine.caching import CacheUse
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import ChatRequest

# The first that is there counts.
_HEADERS = (
    "x-mtplx-session-id",
    "x-session-affinity",  # OpenCode
    "x-session-id",
    "x-openwebui-chat-id",
    "x-claude-code-session-id",
    "session-id",  # Codex
    "thread-id",
)
_METADATA = ("session_id", "mtplx_session_id", "chat_id", "conversation_id")
_LONGEST = 256  # characters
_MODE = "x-mtplx-cache-mode"
_MODES: dict[str, CacheUse] = {
    "on": "keep",
    "bypass": "off",
    "stateless": "off",
    "off": "off",
}


def with_session(
    request: ChatRequest, headers: Mapping[str, str], body: Mapping[str, Any]
) -> ChatRequest:
    """A request that knows its session and what may be kept of it.

    Args:
        request: As a protocol decoded it.
        headers: By names in lower case.
        body: The body's fields.

    Raises:
        InvalidRequest: A header has a value that means nothing.
    """
    name = next(filter(None, map(_name, _candidates(headers, body))), None)
    return replace(request, session=name, caching=_use(headers, body))


def _candidates(headers: Mapping[str, str], body: Mapping[str, Any]) -> Iterator[Any]:
    for name in _HEADERS:
        yield headers.get(name)
    yield body.get("prompt_cache_key")
    metadata = body.get("metadata")
    if isinstance(metadata, Mapping):
        for name in _METADATA:
            yield metadata.get(name)
        yield _claude_code(metadata.get("user_id"))
    yield body.get("session_id")
    yield body.get("user")


def _claude_code(user_id: Any) -> Any:
    """Claude Code puts JSON text into Anthropic's field for an end user."""
    if not isinstance(user_id, str) or not user_id.startswith("{"):
        return None
    try:
        return json.loads(user_id).get("session_id")
    except (ValueError, RecursionError):
        return None


def _name(value: Any) -> str | None:
    """A name that can be shown and looked up; a long one by its digest."""
    if not isinstance(value, str) or not value.strip():
        return None
    name = value.strip()
    if len(name) <= _LONGEST and name.isprintable():
        return name
    return sha256(name.encode(errors="surrogatepass")).hexdigest()


def _use(headers: Mapping[str, str], body: Mapping[str, Any]) -> CacheUse:
    mode = headers.get(_MODE)
    if mode is not None:
        use = _MODES.get(mode.strip().lower())
        if use is None:
            known = ", ".join(_MODES)
            raise InvalidRequest(f"{_MODE} must be one of {known}; got {mode!r}.", _MODE)
        return use
    metadata = body.get("metadata")
    task = metadata.get("task") if isinstance(metadata, Mapping) else None
    # Open WebUI asks for titles, tags and the like beside a conversation, under its name.
    return "read" if task or headers.get("x-openwebui-task") else "keep"
