"""Requests of the right types with odd values: a real model answers them, or they are a 400."""

import json
from typing import Any

import httpx
import pytest

from mtplx_engine import Engine, EngineOptions
from mtplx_engine.tiny import write_tiny_model
from mtplx_server.testing import serving

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
HI = {"role": "user", "content": "hi"}
DEEP: dict[str, Any] = {}
for _ in range(150):
    DEEP = {"a": DEEP}
ODD_TEXTS = ["", "\0", "\ufffe", "\u2028", "\U0010ffff", "<|im_end|>", "<think>", "{{ 1/0 }}"]


def function(name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **fields}}


def schema(value: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"schema": value}}


def grammar(syntax: str, text: str) -> dict[str, Any]:
    return {"type": "grammar", "syntax": syntax, "definition": text}


def call(arguments: str) -> list[Any]:
    called = {"id": "1", "function": {"name": "f", "arguments": arguments}}
    return [HI, {"role": "assistant", "tool_calls": [called]}]


SCHEMAS: list[Any] = [
    {},
    DEEP,
    {"type": "nothing"},
    {"type": []},
    {"enum": []},
    {"const": None},
    {"$ref": "#"},
    {"$ref": "#/nowhere"},
    {"$ref": "https://example.org/schema"},
    {"type": "string", "pattern": "["},
    {"type": "string", "pattern": "^(a|aa)+$"},
    {"type": "string", "minLength": 3, "maxLength": 1},
    {"type": "string", "minLength": 10**9},
    {"type": "integer", "minimum": 1e300},
    {"type": "integer", "minimum": 5, "maximum": 1},
    {"type": "number", "multipleOf": 0},
    {"type": "array", "minItems": -1},
    {"type": "object", "required": ["x"], "additionalProperties": False},
    {"type": "object", "properties": {text: {} for text in ODD_TEXTS}},
    {"properties": 5},
    {"anyOf": [False]},
]
ODD: dict[str, list[Any]] = {
    "chat_template_kwargs": [
        {"tools": 5},
        {"messages": []},
        {"add_generation_prompt": False},
        {"self": 1, "conversation": 2},
        {"bos_token": 1, "raise_exception": 2, "strftime_now": None, "range": 3},
        {"": 1, " ": 2, "__class__": 3},
        {"enable_thinking": DEEP},
        {"enable_thinking": "x" * 10_000_000},
        {"x" * 10_000_000: 1},
    ],
    "stop": [*ODD_TEXTS, ["x"] * 17, ["x" * 600_000] * 16, [], ["\n", ""]],
    "stop_token_ids": [[-1], [2**63], [10**30], list(range(256)) * 30],
    "logit_bias": [
        {"-1": 1},
        {"999999999": 1},
        {"٣": 1},
        {"1_0": 1},
        {" 1": 1},
        {"1": 1e308},
        {"01": 1, "1": -1},
        {str(token): -100 for token in range(256)},
    ],
    "seed": [-(2**63) - 1, -(2**63), 2**64 - 1, 2**64, 10**4000],
    "n": [-1, 0, 129, 2**63, 10**30],
    "top_logprobs": [-1, 21, 2**63],
    "top_k": [2**31, 2**63, 10**30],
    "penalty_window": [0, 2**63, 10**30],
    "depth": [2**31, 10**30],
    "min_tokens": [3, 2**63],
    "max_tokens": [-1, 0, -(2**63)],
    "temperature": [1e-320, 5e-324, -0.0, 2.0000001, 10**400],
    "repetition_penalty": [0, 1e-3, 10, 1e308],
    "model": ODD_TEXTS,
    "reasoning_effort": ODD_TEXTS,
    "tools": [
        *([function(text)] for text in ODD_TEXTS),
        [function("a" * 129)],
        [function(), function()],
        [function(description="\0")],
        *([function(parameters=value, strict=True)] for value in SCHEMAS),
        [function(parameters={"properties": 5})],
    ],
    "tool_choice": ["", "nothing", function(), {"type": "allowed_tools"}, DEEP, {}],
    "response_format": [
        *map(schema, [*SCHEMAS, True, None]),
        *(grammar("lark", text) for text in ("", "start:", "start: start", 'start: "a', "a: /(/")),
        *(grammar("regex", text) for text in ("", "(a", "(?=a)b", "(" * 500)),
    ],
    "messages": [
        *([{"role": "user", "content": text}] for text in ODD_TEXTS),
        [{"role": "user", "content": []}],
        *map(call, ["", "{", "[1]", "null", '{"a": NaN}', "[" * 300, "9" * 300]),
    ],
}
PROMPTS: list[Any] = [*ODD_TEXTS, [], [[]], [""], [-1], [10**30], ["x"] * 2049, [[1], "x"]]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = write_tiny_model(tmp_path_factory.mktemp("model") / "tiny")
    engine = Engine.open(EngineOptions(model=str(folder)))
    with serving(engine) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


def check(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    """Ask for a stream, where what is found out too late would show as an error inside."""
    reply = client.post(path, content=json.dumps({"max_tokens": 2, "stream": True, **body}))
    note = str(body)[:300]
    if reply.status_code == 400:
        assert reply.json()["error"]["type"] == "invalid_request_error", note
    else:
        assert reply.status_code == 200, note
        assert '{"error"' not in reply.text, note
        assert reply.text.endswith("data: [DONE]\n\n"), note


@pytest.mark.parametrize("name", ODD)
def test_odd_values_in_chat(client, name):
    for value in ODD[name]:
        check(client, CHAT, {"messages": [HI], name: value})


def test_odd_prompts(client):
    for prompt in PROMPTS:
        check(client, TEXT, {"prompt": prompt})


@pytest.mark.parametrize("limit", [0, 1])
def test_odd_numbers_of_scores(client, limit):
    for logprobs in (-1, 0, 128, 129, 2**63):
        body = {"prompt": "hi", "echo": True, "logprobs": logprobs, "max_tokens": limit}
        check(client, TEXT, body)
