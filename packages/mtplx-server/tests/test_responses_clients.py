"""Requests in the shapes that agents send, round by round."""

from typing import Any

import pytest

from mtplx_engine.conversation import Message
from mtplx_engine.testing import Script, ScriptedEngine
from mtplx_engine.tools import ToolCall


def part(text: str) -> list[dict[str, str]]:
    return [{"type": "input_text", "text": text}]


def message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "id": f"msg_{role}", "role": role, "content": part(text)}


def function(name: str, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}
    return {"type": "function", "name": name, "description": "-", "parameters": schema, **fields}


AGENTS = {
    "type": "namespace",
    "name": "agents",
    "description": "-",
    "tools": [function("close", strict=False)],
}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "short"}],
    "content": [{"type": "reasoning_text", "text": "hm"}],
    "encrypted_content": "ZW5j",
}
CODEX: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "input": [
        message("developer", "Be an agent."),
        message("user", "Run it"),
        THOUGHT,
        {
            "type": "function_call",
            "status": "completed",
            "id": "fc_1",
            "name": "close",
            "namespace": "agents",
            "arguments": '{"cmd": "x"}',
            "call_id": "call_1",
        },
        {"type": "function_call_output", "id": "fco_1", "call_id": "call_1", "output": "ok"},
    ],
    "tools": [
        function("run", strict=False),
        AGENTS,
        {"type": "web_search", "external_web_access": False},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"summary": "auto"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"session_id": "s"},
}
# Another of its models: tools come as an item, in namespaces, and there is no field for them.
NAMESPACED: dict[str, Any] = {
    **{name: value for name, value in CODEX.items() if name != "tools"},
    "input": [
        {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [AGENTS]},
        *CODEX["input"],
    ],
    "reasoning": {"effort": "low"},
    "text": {"verbosity": "medium"},
}
OPENCODE: dict[str, Any] = {
    "model": "m",
    "input": [
        {"role": "system", "content": "Be an agent."},
        {"role": "user", "content": part("Run it")},
        {
            "type": "reasoning",
            "id": "rs_1",
            "encrypted_content": "mtplx:aG0=",
            "summary": [],
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "agents__close",
            "arguments": '{"cmd": "x"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
    ],
    "max_output_tokens": 4096,
    "store": False,
    "prompt_cache_key": "k",
    "tools": [function("run", strict=False)],
    "tool_choice": "auto",
    "stream": True,
}
PI: dict[str, Any] = {
    **OPENCODE,
    "input": [
        {"role": "developer", "content": "Be an agent."},
        OPENCODE["input"][1],
        {**THOUGHT, "status": "completed"},
        *OPENCODE["input"][3:],
    ],
    "reasoning": {"effort": "medium", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
}
BODIES = {"codex": CODEX, "codex, namespaced": NAMESPACED, "opencode": OPENCODE, "pi": PI}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_second_round_reads_as_one_conversation(serve, body):
    engine = ScriptedEngine(Script(["Done."]))
    reply = serve(engine, skip_hosted_tools=True).post("/v1/responses", json=body)
    assert reply.status_code == 200
    assert reply.text.count("event: response.completed\n") == 1
    assert engine.requests[0].prompt.messages == (
        Message("system", "Be an agent."),
        Message("user", "Run it"),
        Message("assistant", "", "hm", (ToolCall("agents__close", '{"cmd": "x"}', "call_1"),)),
        Message("tool", "ok", call_id="call_1"),
    )
    left_out = '"tools[] of type web_search"' if body is CODEX else ""
    assert f'"ignored_fields":[{left_out}]' in reply.text


def test_without_the_setting_the_search_is_refused_and_the_setting_named(serve):
    reply = serve().post("/v1/responses", json=CODEX)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "tools[2].type"
    assert "--skip-hosted-tools" in reply.json()["error"]["message"]


def test_a_warm_up_is_answered(serve):
    body = {"model": "m", "input": "", "max_output_tokens": 1}
    answer = serve().post("/v1/responses", json=body).json()
    assert answer["usage"]["output_tokens"] == 1
    assert answer["status"] == "incomplete"


HOSTILE = {
    "many items": {"input": [{"role": "user", "content": "x"}] * 100_000},
    "many parts": {"input": [{"role": "user", "content": part("x") * 100_000}]},
    "many tools": {"input": "", "tools": [{"type": "function"}] * 100_000},
    "bad items": {"input": [1] * 100_000},
    "a number": {"input": 1},
    "an output that is a number": {"input": [{"type": "function_call_output", "output": 1}]},
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bodies_are_refused(serve, body):
    client = serve()
    for path in ("/v1/responses", "/v1/responses/input_tokens"):
        reply = client.post(path, json=body)
        assert reply.status_code == 400
        assert reply.json()["error"]["param"]


def test_namespaces_cannot_be_nested_without_end(serve):
    tool: dict[str, Any] = {"type": "namespace", "name": "n", "tools": []}
    for _ in range(60):
        tool = {"type": "namespace", "name": "n", "tools": [tool]}
    reply = serve().post("/v1/responses", json={"input": "hi", "tools": [tool]})
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "tools[0].tools[0].type"
