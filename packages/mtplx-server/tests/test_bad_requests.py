"""Whatever is wrong with a body is a 400 in OpenAI's envelope, and the connection stays usable."""

import http.client
import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtplx_client.wire.chat import ChatCompletionRequest
from mtplx_engine import Engine, EngineOptions
from mtplx_engine.testing import ScriptedEngine
from mtplx_engine.tiny import write_tiny_model
from mtplx_server.errors import RequestRefused
from mtplx_server.http.body import parse_body

HI = {"role": "user", "content": "hi"}


def body(**fields: Any) -> bytes:
    return json.dumps({"messages": [HI], **fields}).encode()


def message(**fields: Any) -> bytes:
    return json.dumps({"messages": [HI, fields]}).encode()


NOT_JSON = {
    "empty": b"",
    "blank": b"  \n",
    "cut off": b'{"messages": [',
    "not UTF-8": b'{"messages": [{"role": "user", "content": "\xff"}]}',
    "UTF-16": '{"messages": []}'.encode("utf-16"),
    "array": b"[1, 2]",
    "string": b'"messages"',
    "null": b"null",
    "NaN": b'{"messages": [], "temperature": NaN}',
    "Infinity": b'{"messages": [], "temperature": Infinity}',
    "deep array": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "lone surrogate": rb'{"messages": [{"role": "user", "content": "\ud800"}]}',
    "number of 5000 digits": b'{"messages": [], "seed": ' + b"9" * 5000 + b"}",
    "form": b"messages=hi&model=m",
}

# Each would cost seconds if every fault in it were told.
HOSTILE = {
    "a million bad messages": b'{"messages":[' + b"1," * 1_000_000 + b"1]}",
    "too many messages": json.dumps({"messages": [HI] * 300_000}).encode(),
    "too many parts": json.dumps(
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 200_000}]}
    ).encode(),
}

WRONG = {
    "no messages": (b"{}", "messages"),
    "messages null": (body(messages=None), "messages"),
    "messages empty": (body(messages=[]), "messages"),
    "messages a string": (body(messages="hi"), "messages"),
    "messages of strings": (body(messages=["hi"]), "messages[0]"),
    "no role": (message(content="x"), "messages[1].role"),
    "unknown role": (message(role="wizard", content="x"), "messages[1].role"),
    "orphan result": (
        message(role="tool", content="x", tool_call_id="1"),
        "messages[1].tool_call_id",
    ),
    "no content": (message(role="user"), "messages[1].content"),
    "content null": (message(role="user", content=None), "messages[1].content"),
    "content a number": (message(role="user", content=5), "messages[1].content"),
    "part a string": (message(role="user", content=["x"]), "messages[1].content[0]"),
    "part without type": (
        message(role="user", content=[{"text": "x"}]),
        "messages[1].content[0].type",
    ),
    "part without text": (
        message(role="user", content=[{"type": "text"}]),
        "messages[1].content[0].text",
    ),
    "part text a number": (
        message(role="user", content=[{"type": "text", "text": 1}]),
        "messages[1].content[0].text",
    ),
    "image": (
        message(role="user", content=[{"type": "image_url", "image_url": {"url": "data:,"}}]),
        "messages[1].content[0]",
    ),
    "tool calls": (
        message(role="assistant", content=None, tool_calls=[{"id": "1"}]),
        "messages[1].tool_calls[0].function",
    ),
    "model a number": (body(model=4), "model"),
    "temperature a word": (body(temperature="hot"), "temperature"),
    "temperature a numeral": (body(temperature="1"), "temperature"),
    "temperature a bool": (body(temperature=True), "temperature"),
    "temperature too high": (body(temperature=2.5), "temperature"),
    "temperature below 0": (body(temperature=-1), "temperature"),
    "temperature huge": (body(temperature=0).replace(b": 0}", b": 1e999}"), "temperature"),
    "temperature a huge int": (body(temperature=10**400), "temperature"),
    "top_p 0": (body(top_p=0), "top_p"),
    "top_p above 1": (body(top_p=1.5), "top_p"),
    "min_p above 1": (body(min_p=2), "min_p"),
    "top_k below 0": (body(top_k=-1), "top_k"),
    "top_k half": (body(top_k=1.5), "top_k"),
    "seed huge": (body(seed=2**80), "seed"),
    "seed a word": (body(seed="x"), "seed"),
    "max_tokens 0": (body(max_tokens=0), "max_tokens"),
    "max_completion_tokens 0": (body(max_completion_tokens=0), "max_completion_tokens"),
    "max_tokens a word": (body(max_tokens="many"), "max_tokens"),
    "stop a number": (body(stop=1), "stop"),
    "stop of numbers": (body(stop=["a", 1]), "stop[1]"),
    "stop empty": (body(stop=""), "stop"),
    "stop too many": (body(stop=["x"] * 17), "stop"),
    "stream a word": (body(stream="yes"), "stream"),
    "stream_options a list": (body(stream_options=[]), "stream_options"),
    "include_usage a word": (
        body(stream_options={"include_usage": "x"}),
        "stream_options.include_usage",
    ),
    "template kwargs a list": (body(chat_template_kwargs=[]), "chat_template_kwargs"),
    "depth below 0": (body(depth=-1), "depth"),
    "depth a word": (body(depth="deep"), "depth"),
    "ar with depth": (body(generation_mode="ar", depth=2), "depth"),
    "mtp without depth": (body(generation_mode="mtp", depth=0), "depth"),
    "unknown mode": (body(generation_mode="magic"), "generation_mode"),
    "unknown acceptance": (body(acceptance="always"), "acceptance"),
}


def post(connection: http.client.HTTPConnection, content: bytes) -> tuple[int, Any]:
    connection.request("POST", "/v1/chat/completions", content)
    response = connection.getresponse()
    assert response.headers["content-type"] == "application/json"
    return response.status, json.loads(response.read())


def test_bad_bodies_one_after_the_other_on_one_connection(serve):
    engine = ScriptedEngine()
    address = urlsplit(str(serve(engine).base_url))
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    connection.connect()
    socket = connection.sock
    cases = [(name, content, None) for name, content in NOT_JSON.items()]
    cases += [(name, content, param) for name, (content, param) in WRONG.items()]
    for name, content, param in cases:
        status, reply = post(connection, content)
        error = reply["error"]
        assert (name, status, error["param"]) == (name, 400, param)
        assert error["type"] == "invalid_request_error", name
        assert set(error) == {"message", "type", "param", "code"}
        assert param is None or param.split(".")[-1].split("[")[0] in error["message"], name
        assert "Traceback" not in error["message"]
    assert engine.requests == []
    assert post(connection, body())[0] == 200
    assert connection.sock is socket
    connection.close()


WORDS = st.sampled_from([*ChatCompletionRequest.model_fields, "role", "content", "user", ""])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS
JSON = SCALARS | st.lists(SCALARS | st.dictionaries(WORDS, SCALARS, max_size=3), max_size=3)


OBJECTS = st.dictionaries(WORDS, JSON, max_size=5).map(lambda value: json.dumps(value).encode())


@given(st.binary() | OBJECTS)
def test_any_bytes_are_read_or_refused(content):
    with suppress(RequestRefused):  # anything else would be a 500
        parse_body(content, ChatCompletionRequest)


def test_a_body_over_the_limit_is_a_413_that_arrives(serve):
    client = serve(max_body_bytes=1000)
    for size in (1001, 3000, 1_000_000):
        response = client.post("/v1/chat/completions", content=b"x" * size)
        assert response.status_code == 413
        assert response.json()["error"]["code"] == "request_too_large"
    assert client.post("/v1/chat/completions", content=body()).status_code == 200


def test_strict_fields_refuses_what_would_have_no_effect(serve):
    client = serve(strict_fields=True)
    response = client.post("/v1/chat/completions", content=body(colour="red", user="me"))
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "colour"
    assert client.post("/v1/chat/completions", content=body(user="me")).status_code == 200


def test_strict_model_refuses_other_names(serve):
    client = serve(strict_model=True)
    response = client.post("/v1/chat/completions", content=body(model="gpt-4"))
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"
    for content in (body(), body(model="org/scripted"), body(model=None)):
        assert client.post("/v1/chat/completions", content=content).status_code == 200


def test_hostile_bodies_are_refused_with_a_short_answer(serve):
    client = serve(ScriptedEngine())
    for name, content in HOSTILE.items():
        response = client.post("/v1/chat/completions", content=content)
        assert (name, response.status_code) == (name, 400)
        assert len(response.content) < 1000, name
        assert response.json()["error"]["param"].startswith("messages"), name


def test_a_hundred_thousand_unknown_fields_are_counted_not_listed(serve):
    fields = {f"field{number}": 1 for number in range(100_000)}
    reply = serve(ScriptedEngine()).post("/v1/chat/completions", content=body(**fields)).json()
    ignored = reply["mtplx"]["ignored_fields"]
    assert len(ignored) == 101
    assert ignored[-1] == "... and 99900 more"


def test_a_template_of_the_clients_own_is_refused(serve, tmp_path):
    engine = Engine.open(EngineOptions(model=str(write_tiny_model(tmp_path / "tiny", "llama"))))
    client = serve(engine)
    for template in ("{{ 1 / 0 }}", "{% for i in range(99999) %}{% endfor %}"):
        content = body(chat_template_kwargs={"chat_template": template})
        response = client.post("/v1/chat/completions", content=content)
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "chat_template_kwargs.chat_template"


LONG = "x" * 1_000_000
QUOTED = {
    "role": {"messages": [{"role": LONG, "content": "x"}]},
    "part": {"messages": [{"role": "user", "content": [{"type": LONG}]}]},
    "result": {"messages": [{"role": "tool", "content": "x", "tool_call_id": LONG}]},
    "tool": {"tools": [{"type": LONG}]},
    "tool name": {"tools": [{"type": "function", "function": {"name": LONG}}]},
    "tool choice": {"tool_choice": {"type": "function", "function": {"name": LONG}}},
    "format": {"response_format": {"type": LONG}},
    "syntax": {"response_format": {"type": "grammar", "definition": "a", "syntax": LONG}},
    "effort": {"reasoning_effort": LONG},
    "acceptance": {"acceptance": LONG},
    "mode": {"generation_mode": LONG},
    "bias": {"logit_bias": {LONG: 1}},
    "path": {"logit_bias": {LONG: "x"}},
    "seed": {"seed": 10**4000},
    "model": {"model": LONG},
    "field": {LONG: 1},
}


@pytest.mark.parametrize("fields", QUOTED.values(), ids=QUOTED.keys())
def test_what_is_quoted_is_cut(serve, fields):
    client = serve(strict_fields=True, strict_model=True)
    response = client.post("/v1/chat/completions", content=body(**fields))
    assert response.status_code in (400, 404)
    assert 0 < len(response.content) < 5000


def test_a_long_name_of_an_ignored_field_is_cut(serve):
    reply = serve().post("/v1/chat/completions", content=body(**{LONG: 1}))
    assert reply.status_code == 200
    assert len(reply.content) < 5000
