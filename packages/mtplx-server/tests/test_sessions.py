"""Conversations by name, what they took from the session cache, and forgetting them."""

import itertools
import json

import pytest

from mtplx_engine.caching import CacheStatus, RamStatus, Restored, SessionInfo
from mtplx_engine.conversation import RawText
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import ChatRequest
from mtplx_engine.testing import Script, ScriptedEngine
from mtplx_server.protocols.session import with_session

SOURCES = [
    ({"x-mtplx-session-id": "a"}, {}, "a"),
    ({"x-session-affinity": "b"}, {}, "b"),
    ({"x-session-id": "c"}, {}, "c"),
    ({"x-openwebui-chat-id": "d"}, {}, "d"),
    ({"x-claude-code-session-id": "e"}, {}, "e"),
    ({"session-id": "f"}, {}, "f"),
    ({}, {"prompt_cache_key": "g"}, "g"),
    ({}, {"metadata": {"session_id": "h"}}, "h"),
    ({}, {"metadata": {"user_id": json.dumps({"session_id": "i"})}}, "i"),
    ({}, {"user": "j"}, "j"),
]
PROMPT = ChatRequest(RawText("hi"))


def test_each_source_names_the_session_and_the_first_counts() -> None:
    for headers, body, name in SOURCES:
        assert with_session(PROMPT, headers, body).session == name
    for (h1, b1, first), (h2, b2, _) in itertools.combinations(SOURCES, 2):
        metadata = {**b2.get("metadata", {}), **b1.get("metadata", {})}
        body = {**b2, **b1, "metadata": metadata}
        assert with_session(PROMPT, {**h2, **h1}, body).session == first


@pytest.mark.parametrize("value", ["", "  ", None, 3, [], {}])
def test_what_is_no_name_is_none(value: object) -> None:
    body = {"user": value, "prompt_cache_key": value, "metadata": value}
    assert with_session(PROMPT, {}, body).session is None
    body = {"metadata": {"session_id": value, "user_id": "{"}, "user": "me"}
    assert with_session(PROMPT, {}, body).session == "me"


@pytest.mark.parametrize("value", ["x" * 257, "a\nb", "\ud800"])
def test_a_name_that_cannot_be_shown_goes_by_its_digest(value: str) -> None:
    name = with_session(PROMPT, {}, {"user": value}).session
    assert name is not None
    assert len(name) == 64
    assert name == with_session(PROMPT, {}, {"user": value}).session


def test_what_the_cache_may_do() -> None:
    assert with_session(PROMPT, {}, {}).caching == "keep"
    assert with_session(PROMPT, {"x-mtplx-cache-mode": "Bypass"}, {}).caching == "off"
    assert with_session(PROMPT, {"x-openwebui-task": "title_generation"}, {}).caching == "read"
    assert with_session(PROMPT, {}, {"metadata": {"task": "tags_generation"}}).caching == "read"
    with pytest.raises(InvalidRequest, match="x-mtplx-cache-mode"):
        with_session(PROMPT, {"x-mtplx-cache-mode": "maybe"}, {})


BODY = {"messages": [{"role": "user", "content": "hi"}]}
WARM = Restored(5, "ram", None, 6, "mine")


def test_headers_and_bodies_reach_the_engine(serve) -> None:
    engine = ScriptedEngine()
    client = serve(engine)
    assert client.post("/v1/chat/completions", json=BODY | {"user": "me"}).status_code == 200
    headers = {"X-Session-Id": "s1"}
    client.post("/v1/chat/completions", json=BODY, headers=headers).raise_for_status()
    assert [each.session for each in engine.requests] == ["me", "s1"]
    wrong = client.post("/v1/chat/completions", json=BODY, headers={"x-mtplx-cache-mode": "no"})
    assert wrong.status_code == 400
    assert wrong.json()["error"]["param"] == "x-mtplx-cache-mode"


def test_cached_tokens_are_told_by_every_protocol(serve) -> None:
    client = serve(ScriptedEngine(Script(restored=WARM)))
    chat = client.post("/v1/chat/completions", json=BODY).json()
    assert chat["usage"]["prompt_tokens"] == 7
    assert chat["usage"]["prompt_tokens_details"]["cached_tokens"] == 5
    assert chat["mtplx"]["cache"] == {
        "source": "ram",
        "cached_tokens": 5,
        "cold_because": None,
        "prefix_diverged_at": 6,
        "session": "mine",
    }
    completion = client.post("/v1/completions", json={"prompt": "hi"}).json()
    assert completion["usage"]["prompt_tokens_details"]["cached_tokens"] == 5
    response = client.post("/v1/responses", json={"input": "hi"}).json()
    assert response["usage"]["input_tokens"] == 7
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 5
    message = client.post("/v1/messages", json=BODY | {"max_tokens": 9}).json()
    assert message["usage"]["input_tokens"] == 2
    assert message["usage"]["cache_read_input_tokens"] == 5


def kept(name: str) -> SessionInfo:
    return SessionInfo(name, True, 12, 3000, 2, 1.0, 2.0, 0, WARM)


def test_sessions_are_listed_and_forgotten(serve) -> None:
    engine = ScriptedEngine()
    engine.cache = CacheStatus(RamStatus(3000, 9000, 4), sessions=(kept("a/b c"), kept("other")))
    client = serve(engine)
    told = client.get("/admin/sessions").json()
    assert told["count"] == 2
    assert told["sessions"][0]["session_id"] == "a/b c"
    assert told["sessions"][0]["cache"]["source"] == "ram"
    assert told["ram"]["bytes"] == 3000
    for existed in (True, False):
        cleared = client.post("/admin/sessions/a%2Fb%20c/clear").json()
        assert cleared["session_id"] == "a/b c"
        assert cleared["existed"] is existed
    assert client.get("/admin/sessions").json()["count"] == 1
    assert client.post("/admin/cache/clear").json()["sessions"] == 1
    assert engine.cleared == ["a/b c", "a/b c", None]


@pytest.mark.parametrize("path", ["/admin/cache/clear", "/admin/sessions/x/clear"])
def test_a_page_of_another_site_may_not_forget_anything(serve, path: str) -> None:
    engine = ScriptedEngine()
    client = serve(engine)
    refused = client.post(path, headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403
    assert "evil.example" in refused.json()["error"]["message"]
    assert engine.cleared == []
    own = str(client.base_url).rstrip("/")
    assert client.post(path, headers={"Origin": own}).status_code == 200
