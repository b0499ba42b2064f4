"""Which shape a client gets where several protocols share a path, or no route matches."""

import pytest

VERSION = {"anthropic-version": "2023-06-01"}
UPGRADE = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
ANTHROPIC_CARD = {
    "type": "model",
    "id": "org/scripted",
    "display_name": "org/scripted",
    "created_at": "2023-11-14T22:13:20Z",
    "max_input_tokens": 4096,
    "max_tokens": 4096,
}


def openai(reply) -> bool:
    return set(reply.json()["error"]) == {"message", "type", "param", "code"}


def anthropic(reply) -> bool:
    found = reply.json()
    assert set(found["error"]) == {"type", "message"}
    return found["type"] == "error" and found["request_id"] == reply.headers["request-id"]


def ollama(reply) -> bool:
    return isinstance(reply.json()["error"], str)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/"])
def test_the_list_of_models_for_clients_of_anthropic(serve, path):
    ends = {"first_id": "org/scripted", "last_id": "org/scripted"}
    listed = serve().get(path, headers=VERSION, params={"limit": 1000}).json()
    assert listed == {"data": [ANTHROPIC_CARD], "has_more": False, **ends}


def test_one_model_for_clients_of_anthropic(serve):
    client = serve()
    assert client.get("/v1/models/org%2Fscripted", headers=VERSION).json() == ANTHROPIC_CARD
    unknown = client.get("/v1/models/nope", headers=VERSION)
    assert unknown.status_code == 404
    assert anthropic(unknown)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "shape"),
    [
        ("GET", "/nope", {}, 404, openai),
        ("GET", "/nope", VERSION, 404, anthropic),
        ("GET", "/v1/messages", {}, 405, anthropic),
        ("POST", "/v1/messages", {}, 400, anthropic),
        ("POST", "/v1/messages/nope", {}, 404, anthropic),
        ("POST", "/v1/messages/count_tokens", {}, 400, anthropic),
        ("PUT", "/v1/models", VERSION, 405, anthropic),
        ("POST", "/v1/chat/completions", {}, 400, openai),
        ("POST", "/v1/responses", {}, 400, openai),
        ("GET", "/v1/responses", {}, 405, openai),
        ("GET", "/v1/responses", UPGRADE, 426, openai),
        ("GET", "/v1/responses/resp_1", {}, 404, openai),
        ("POST", "/api/chat", {}, 400, ollama),
        ("GET", "/api/chat", {}, 405, ollama),
        ("POST", "/api/nope", {}, 404, ollama),
    ],
)
def test_a_client_gets_the_envelope_that_it_knows(serve, method, path, headers, status, shape):
    reply = serve().request(method, path, content=b"{", headers=headers)
    assert reply.status_code == status
    assert shape(reply)
