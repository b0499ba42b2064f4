"""Ollama's replies, whole and in lines, and what clients ask before they use them."""

import json
import sys
from dataclasses import replace
from datetime import datetime
from threading import Event
from typing import Any

import pytest

from mtplx_engine.errors import ContextOverflow, EngineFailed
from mtplx_engine.testing import SCRIPTED_MODEL, Hold, Script, ScriptedEngine
from mtplx_server import __version__
from mtplx_server.protocols.ollama.models import _in_short

HI = [{"role": "user", "content": "hi"}]
CHAT = {"model": "any", "messages": HI}
GENERATE = {"model": "any", "prompt": "hi"}
THOUGHTFUL = Script(["hm</think>", "Hello", " there"], thinks=True)


def lines(reply: Any) -> list[dict[str, Any]]:
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert reply.text.endswith("\n")
    return [json.loads(line) for line in reply.text.split("\n")[:-1]]


def test_thoughts_of_a_prompt_come_beside_the_answer_both_ways(serve):
    client = serve(ScriptedEngine(THOUGHTFUL))
    whole = client.post("/api/generate", json=GENERATE | {"stream": False}).json()
    assert (whole["thinking"], whole["response"]) == ("hm", "Hello there")
    *parts, last = lines(client.post("/api/generate", json=GENERATE))
    assert "".join(each.get("thinking", "") for each in parts) == "hm"
    assert "".join(each["response"] for each in parts) == "Hello there"
    assert {each["done"] for each in parts} == {False}
    assert (last["done"], last["done_reason"], last["response"]) == (True, "stop", "")
    assert last["mtplx"]["requested_model"] == "any"
    assert last["model"] == "org/scripted"


def test_times_are_in_nanoseconds_and_dates_have_a_zone(serve):
    reply = serve().post("/api/chat", json=CHAT | {"stream": False}).json()
    assert reply["total_duration"] == 751_000_000
    assert reply["prompt_eval_duration"] == 250_000_000
    assert reply["eval_duration"] == 500_000_000
    assert (reply["load_duration"], reply["prompt_eval_count"], reply["eval_count"]) == (0, 7, 2)
    assert datetime.fromisoformat(reply["created_at"]).tzinfo is not None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/chat", {}),
        ("/api/chat", {"messages": []}),
        ("/api/generate", {}),
        ("/api/generate", {"prompt": "", "system": "Be brief."}),
    ],
)
@pytest.mark.parametrize(
    ("keep_alive", "reason"),
    [
        (None, "load"),
        ("5m", "load"),
        (-1, "load"),
        (0, "unload"),
        ("0s", "unload"),
        (0.0, "unload"),
    ],
)
def test_nothing_is_generated_where_nothing_is_said(serve, path, body, keep_alive, reason):
    engine = ScriptedEngine()
    client = serve(engine)
    body = {"model": "any", "keep_alive": keep_alive, **body}
    (line,) = lines(client.post(path, json=body))
    whole = client.post(path, json=body | {"stream": False}).json()
    assert line.keys() == whole.keys()
    assert (whole["done"], whole["done_reason"], whole["model"]) == (True, reason, "org/scripted")
    assert whole.get("response", "") == whole.get("message", {}).get("content", "") == ""
    assert engine.requests == []


def test_a_silence_is_broken_by_lines_that_say_nothing(serve):
    release = Event()
    engine = ScriptedEngine(Script([Hold(release), "ok"]))
    client = serve(engine, keepalive_s=0.01)
    with client.stream("POST", "/api/chat", json=CHAT) as reply:
        told = reply.iter_lines()
        first = json.loads(next(told))
        release.set()
        rest = [json.loads(line) for line in told]
    assert (first["done"], first["message"]) == (False, {"role": "assistant", "content": ""})
    assert "".join(each["message"]["content"] for each in rest) == "ok"
    assert rest[-1]["done"] is True


def test_an_error_before_the_answer_is_a_status(serve):
    client = serve(ScriptedEngine(Script(rejection=ContextOverflow(5000, 4096))))
    for path, body in (("/api/chat", CHAT), ("/api/generate", GENERATE)):
        reply = client.post(path, json=body)
        assert reply.status_code == 400
        assert list(reply.json()) == ["error"]
        assert "5000" in reply.json()["error"]


def test_an_error_amid_the_answer_is_the_last_line(serve):
    client = serve(ScriptedEngine(Script(["begun", EngineFailed("out of memory")])))
    begun, failed = lines(client.post("/api/generate", json=GENERATE))
    assert begun["response"] == "begun"
    assert failed == {"error": "out of memory"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/api/copy", 404),
        ("DELETE", "/api/delete", 404),
        ("POST", "/api/create", 404),
        ("POST", "/api/push", 404),
        ("GET", "/api/blobs/sha256:1", 404),
        ("GET", "/api/chat", 405),
        ("POST", "/api/tags", 405),
        ("POST", "/api/embed", 400),
        ("POST", "/api/embeddings", 400),
        ("POST", "/api/chat", 400),
    ],
)
def test_every_refusal_has_the_envelope(serve, method, path, status):
    body = {"model": 5, "input": ["a"], "prompt": "a"}
    reply = serve().request(method, path, json=body)
    assert reply.status_code == status
    assert list(reply.json()) == ["error"]
    assert isinstance(reply.json()["error"], str)


DETAILS = {
    "parent_model": "",
    "format": "mlx",
    "family": "script",
    "families": ["script"],
    "parameter_size": "0",
    "quantization_level": "none",
}


def test_the_lists_of_models(serve):
    client = serve()
    (tag,), (loaded,) = (client.get(f"/api/{each}").json()["models"] for each in ("tags", "ps"))
    assert len(tag["digest"]) == 64
    assert tag["digest"] == loaded["digest"]
    assert tag == {
        "name": "org/scripted",
        "model": "org/scripted",
        "modified_at": "2023-11-14T22:13:20Z",
        "size": 0,
        "digest": tag["digest"],
        "details": DETAILS,
    }
    assert loaded == {
        "name": "org/scripted",
        "model": "org/scripted",
        "size": 0,
        "digest": tag["digest"],
        "details": DETAILS,
        "expires_at": "9999-12-31T23:59:59Z",
        "size_vram": 0,
        "context_length": 4096,
    }


def test_one_model(serve):
    told = serve().post("/api/show", json={"model": "any"}).json()
    assert told == {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": DETAILS,
        "model_info": {
            "general.architecture": "script",
            "general.parameter_count": 0,
            "script.context_length": 4096,
        },
        "capabilities": ["completion", "tools", "thinking"],
        "modified_at": "2023-11-14T22:13:20Z",
    }


@pytest.mark.parametrize(
    ("knows_tools", "variables", "expected"),
    [
        (False, None, []),
        (False, frozenset({"messages"}), []),
        (True, frozenset({"enable_thinking"}), ["tools", "thinking"]),
    ],
)
def test_only_what_is_known_is_a_capability(serve, knows_tools, variables, expected):
    known = {"knows_tools": knows_tools, "template_variables": variables}
    model = replace(SCRIPTED_MODEL, efforts=(), **known)
    told = serve(ScriptedEngine(model=model)).post("/api/show", json={"name": "any"}).json()
    assert told["capabilities"] == ["completion", *expected]


def test_a_strict_server_tells_of_its_own_model_only(serve):
    client = serve(strict_model=True)
    for name in ("org/scripted", "org/scripted:latest"):
        assert client.post("/api/show", json={"model": name}).status_code == 200
    reply = client.post("/api/show", json={"model": "llama"})
    assert (reply.status_code, list(reply.json())) == (404, ["error"])


def test_pulling_succeeds_for_what_is_served(serve):
    client = serve()
    for name in ("org/scripted", "org/scripted:latest"):
        assert lines(client.post("/api/pull", json={"model": name})) == [{"status": "success"}]
    body = {"name": "org/scripted", "stream": False}
    assert client.post("/api/pull", json=body).json() == {"status": "success"}
    reply = client.post("/api/pull", json={"model": "llama"})
    assert reply.status_code == 404
    assert "mtplx serve MODEL" in reply.json()["error"]


def test_what_codex_asks_before_it_begins(serve):
    client = serve()
    assert client.get("/v1/models").json()["data"][0]["id"] == "org/scripted"
    told = client.get("/api/version").json()
    assert tuple(map(int, told["version"].split("."))) >= (0, 13, 4)
    assert told["mtplx"] == __version__
    assert client.get("/api/tags").json()["models"][0]["name"] == "org/scripted"
    # It reads lines, each with its end.
    pulled = client.post("/api/pull", json={"model": "org/scripted", "stream": True})
    assert pulled.text == '{"status":"success"}\n'


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (134_515_008, "134.5M"), (8_030_261_248, "8.0B"), (10**12, "1.0T")],
)
def test_numbers_of_parameters(number, text):
    assert _in_short(number) == text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("written", "sent"),
    [
        (r'"a\ud800b"', "a�b"),
        (r'"😀"', "\N{GRINNING FACE}"),
        ("1e999", sys.float_info.max),
        ("-1e999", -sys.float_info.max),
    ],
)
def test_what_nobody_can_send_is_sent_as_what_comes_nearest(serve, stream, written, sent):
    call = f'<tool_call>{{"name": "f", "arguments": {{"x": {written}}}}}</tool_call>'
    tools = [{"type": "function", "function": {"name": "f"}}]
    client = serve(ScriptedEngine(Script([call])))
    reply = client.post("/api/chat", json=CHAT | {"tools": tools, "stream": stream})
    replies = lines(reply) if stream else [reply.json()]
    calls = [call for each in replies for call in each["message"].get("tool_calls", ())]
    assert [call["function"]["arguments"] for call in calls] == [{"x": sent}]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"options": {"temperature": -5}}, "options.temperature"),
        ({"options": {"repeat_penalty": 0}}, "options.repeat_penalty"),
        ({"format": "xml"}, "format"),
        ({"top_logprobs": 3}, "top_logprobs"),
    ],
)
@pytest.mark.parametrize("prompt", ["", "hi"])
def test_a_wrong_value_is_named_as_it_was_sent(serve, fields, where, prompt):
    reply = serve().post("/api/generate", json=GENERATE | {"prompt": prompt} | fields)
    assert reply.status_code == 400
    assert reply.json()["error"].startswith(where)
