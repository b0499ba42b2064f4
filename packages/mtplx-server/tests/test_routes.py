"""Everything besides chat: models, health, unknown paths and methods, request ids."""

import json
from threading import Event

import pytest

from mtplx_client.wire.health import Health
from mtplx_engine.testing import Hold, Script, ScriptedEngine

CARD = {
    "id": "org/scripted",
    "object": "model",
    "created": 1_700_000_000,
    "owned_by": "mtplx",
    "context_length": 4096,
    "max_model_len": 4096,
    "capabilities": ["chat"],
}
BODY = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/"])
def test_the_list_of_models(serve, path):
    assert serve().get(path).json() == {"object": "list", "data": [CARD]}


@pytest.mark.parametrize("name", ["org/scripted", "org%2Fscripted", "org%2Fscripted/"])
def test_one_model(serve, name):
    assert serve().get(f"/v1/models/{name}").json() == CARD


@pytest.mark.parametrize("name", ["nope", "org", "no%2Fpe", "%FF", "org%252Fscripted", "%2F", "/"])
def test_an_unknown_model(serve, name):
    response = serve().get(f"/v1/models/{name}")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize("path", ["/nope", "/v1", "/v1/chat", "/v1/chat/completions/x", "/v2/%FF"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_path(serve, path, method):
    response = serve().request(method, path, content=b"{}")
    assert response.status_code == 404
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("DELETE", "/v1/chat/completions/", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("PUT", "/v1/models/org/scripted", "GET, HEAD"),
        ("POST", "/health", "GET, HEAD"),
        ("BREW", "/health", "GET, HEAD"),
    ],
)
def test_a_wrong_method(serve, method, path, allow):
    response = serve().request(method, path, content=b"{}")
    assert response.status_code == 405
    assert response.headers["allow"] == allow
    assert response.json()["error"]["code"] == "method_not_allowed"


def test_a_closing_slash_changes_nothing(serve):
    client = serve()
    assert client.get("/health/").status_code == 200
    assert client.post("/v1/chat/completions/", json=BODY).status_code == 200


@pytest.mark.parametrize("path", ["/", "/health", "/v1/models"])
def test_head_is_get_without_the_body(serve, path):
    client = serve()
    head = client.head(path)
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == str(len(client.get(path).content))


def test_health_during_a_generation(serve, wait_for):
    release = Event()
    engine = ScriptedEngine(Script(["a", Hold(release), "b"]))
    client = serve(engine)
    with client.stream("POST", "/v1/chat/completions", json=BODY | {"stream": True}) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("data: ")
        health = client.get("/health")
        assert health.status_code == 200
        assert Health.model_validate_json(health.content).active == 1
        release.set()
        assert "data: [DONE]" in list(lines)
    engine.wait_idle(30)
    health = Health.model_validate_json(client.get("/health").content)
    assert (health.status, health.active, health.completed) == ("ok", 0, 1)
    assert (health.model, health.mtp, health.depth) == ("org/scripted", True, 2)


def test_a_dead_engine_is_reported_and_nobody_hangs(serve):
    engine = ScriptedEngine(Script(["a", Hold(Event())]))
    client = serve(engine)
    with client.stream("POST", "/v1/chat/completions", json=BODY | {"stream": True}) as response:
        lines = response.iter_lines()
        next(lines)
        engine.fail("out of memory")
        *_, last, _ = (line for line in lines if line)
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "engine_failed"
    health = client.get("/health")
    assert health.status_code == 503
    assert (health.json()["status"], health.json()["reason"]) == ("failed", "out of memory")
    assert client.post("/v1/chat/completions", json=BODY).status_code == 503
    assert client.get("/v1/models").status_code == 200


REPLIES = [
    ("GET", "/health", b"", 200),
    ("HEAD", "/health", b"", 200),
    ("GET", "/v1/models", b"", 200),
    ("GET", "/v1/models/nope", b"", 404),
    ("GET", "/nope", b"", 404),
    ("PUT", "/health", b"", 405),
    ("POST", "/v1/chat/completions", json.dumps(BODY).encode(), 200),
    ("POST", "/v1/chat/completions", json.dumps(BODY | {"stream": True}).encode(), 200),
    ("POST", "/v1/chat/completions", b"{", 400),
    ("POST", "/v1/chat/completions", b"x" * 5000, 413),
]


@pytest.mark.parametrize(("method", "path", "content", "status"), REPLIES)
def test_every_reply_has_a_request_id(serve, method, path, content, status):
    client = serve(max_body_bytes=2000)
    made_up = client.request(method, path, content=content)
    assert made_up.status_code == status
    assert made_up.headers["x-request-id"] == made_up.headers["request-id"]
    assert made_up.headers["x-request-id"].startswith("req_")
    assert "alt-svc" not in made_up.headers

    given = client.request(method, path, content=content, headers={"X-Request-Id": "abc-1.2"})
    assert given.headers["x-request-id"] == given.headers["request-id"] == "abc-1.2"


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "é".encode(), "a\tb", '"'])
def test_a_strange_request_id_is_not_echoed(serve, name):
    response = serve().get("/health", headers={"X-Request-Id": name})
    assert response.status_code == 200
    assert response.headers["x-request-id"].startswith("req_")


MALFORMED = [
    b"garbage\r\n\r\n",
    b"GET /health HTTP/9.9\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n\r\n",
    b"GET /health HTTP/1.1\r\na: " + b"x" * 20_000 + b"\r\n\r\n",
]


@pytest.mark.parametrize("request_bytes", MALFORMED)
def test_malformed_http_gets_the_envelope_too(serve, connect, request_bytes):
    client = serve()
    connection = connect(client)
    connection.sendall(request_bytes)
    reply = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, content = reply.partition(b"\r\n\r\n")
    assert head.split()[1] in (b"400", b"413")
    assert b"x-request-id: req_" in head
    assert json.loads(content)["error"]["type"] == "invalid_request_error"
    assert client.get("/health").status_code == 200
