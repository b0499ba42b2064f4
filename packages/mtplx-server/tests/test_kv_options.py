"""Quantised keys and values, as every protocol asks for them and tells of them."""

import pytest

from mtplx_engine import InvalidRequest, KVFormat, KVQuant
from mtplx_engine.testing import Script, ScriptedEngine

MESSAGES = {"messages": [{"role": "user", "content": "hi"}]}
ENDPOINTS = {
    "/v1/chat/completions": MESSAGES,
    "/v1/completions": {"prompt": "hi"},
    "/v1/responses": {"input": "hi"},
    "/v1/messages": MESSAGES | {"max_tokens": 9},
    "/api/chat": MESSAGES | {"stream": False},
    "/api/generate": {"prompt": "hi", "stream": False},
}


@pytest.fixture(params=ENDPOINTS.keys())
def path(request):
    return request.param


def body(path, **fields):
    """A request; Ollama has its options in a place of their own."""
    return ENDPOINTS[path] | ({"options": fields} if path.startswith("/api/") else fields)


def ours(path, name):
    return f"options.{name}" if path.startswith("/api/") else name


@pytest.mark.parametrize(
    ("fields", "kv"),
    [
        ({}, None),
        ({"kv_bits": None, "kv_group_size": None, "quantized_kv_start": None}, None),
        ({"kv_bits": 4}, KVQuant(4)),
        ({"kv_bits": 0}, KVQuant(0)),
        ({"kv_bits": -1}, KVQuant(-1)),
        ({"kv_group_size": 128}, KVQuant(group_size=128)),
        ({"quantized_kv_start": -7}, KVQuant(start=-7)),
        ({"kv_bits": 8, "kv_group_size": 32, "quantized_kv_start": 5000}, KVQuant(8, 32, 5000)),
    ],
)
def test_what_is_asked_arrives(serve, path, fields, kv):
    engine = ScriptedEngine()
    reply = serve(engine, strict_fields=True).post(path, json=body(path, **fields))
    assert reply.status_code == 200, reply.text
    assert [request.kv for request in engine.requests] == [kv]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kv_bits", 3),
        ("kv_bits", 16),
        ("kv_bits", 10**30),
        ("kv_bits", "4"),
        ("kv_bits", 4.5),
        ("kv_bits", True),
        ("kv_group_size", 0),
        ("kv_group_size", 48),
        ("kv_group_size", [64]),
        ("quantized_kv_start", "always"),
        ("quantized_kv_start", 0.5),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(serve, path, name, value):
    engine = ScriptedEngine()
    reply = serve(engine).post(path, json=body(path, **{name: value}))
    assert reply.status_code == 400
    assert ours(path, name) in reply.text
    assert not engine.requests


def test_what_the_model_cannot_is_a_400(serve, path):
    refusal = InvalidRequest("kv_bits 8 is not possible: the heads are 16 wide.", "kv_bits")
    reply = serve(ScriptedEngine(Script(rejection=refusal))).post(path, json=body(path, kv_bits=8))
    assert reply.status_code == 400
    assert "kv_bits 8 is not possible" in reply.text


@pytest.mark.parametrize(
    ("kv", "told"),
    [(KVFormat(8, 64), "q8 group 64"), (KVFormat(4, 32), "q4 group 32"), (None,) * 2],
)
def test_the_report_tells_the_format(serve, path, kv, told):
    reply = serve(ScriptedEngine(Script(kv=kv))).post(path, json=body(path)).json()
    assert reply["mtplx"]["kv"] == told
