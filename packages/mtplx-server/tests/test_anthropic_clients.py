"""Requests of the shape that coding agents send; all of them must be answered."""

import json
from itertools import pairwise
from typing import Any

from mtplx_engine.testing import Script, ScriptedEngine

CACHED = {"cache_control": {"type": "ephemeral"}}
READ = {
    "name": "Read",
    "description": "Reads a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
USER = {"session": "0"}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def agent(turn: int, session: str) -> dict[str, Any]:
    """A turn of an agent that thinks, reads a file a turn and moves its cache mark along."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [text("<reminder>"), text("Fix it.")]},
        {"role": "system", "content": "There are skills."},
    ]
    for at in range(turn):
        call = {"type": "tool_use", "id": f"toolu_{at}", "name": "Read", "input": {"path": "a"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": f"line {at}"}
        thought = {"type": "thinking", "thinking": "hm", "signature": ""}
        messages.append({"role": "assistant", "content": [thought, text("Let me see."), call]})
        messages.append({"role": "user", "content": [result | {"is_error": False}]})
    if isinstance(messages[-1]["content"], list):
        messages[-1]["content"][-1] |= CACHED
    billing = text(f"x-anthropic-billing-header: cc_version=1.{session}; cc_entrypoint=cli;")
    return {
        "model": "claude-opus-4-8",
        "max_tokens": 64_000,
        "system": [billing, text("You are an agent.", **CACHED), text("Be brief.", **CACHED)],
        "messages": messages,
        "tools": [READ, READ | {"name": "Edit"} | CACHED],
        "metadata": {"user_id": json.dumps(USER)},
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "high"},
        "stream": True,
    }


OTHERS = {
    "a title": agent(0, "0")
    | {
        "tools": [],
        "output_config": {
            "effort": "high",
            "format": {"type": "json_schema", "schema": {"type": "object"}},
        },
    },
    "an older model": agent(1, "0") | {"thinking": {"type": "enabled", "budget_tokens": 31_999}},
    "a search": agent(0, "0")
    | {
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
        "tool_choice": {"type": "auto"},
    },
    "a budget beyond all tokens": {
        "model": "m",
        "max_tokens": 8000,
        "messages": [{"role": "user", "content": "hi"}],
        "thinking": {"type": "enabled", "budget_tokens": 32_000, "display": "summarized"},
        "tools": [READ | {"eager_input_streaming": True}],
    },
}
HEADERS = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,context-1m-2025-08-07,no-such-beta-2099-01-01",
    "x-api-key": "none",
}


def test_each_is_answered_and_counted(serve):
    client = serve(ScriptedEngine(Script(["ok"])))
    for name, body in {"an agent": agent(2, "0"), **OTHERS}.items():
        for stream in (True, False):
            reply = client.post(
                "/v1/messages?beta=true", json=body | {"stream": stream}, headers=HEADERS
            )
            assert (name, reply.status_code) == (name, 200)
        counted = client.post("/v1/messages/count_tokens?beta=true", json=body, headers=HEADERS)
        assert (name, counted.json()) == (name, {"input_tokens": 7})


def test_each_turn_begins_with_all_of_the_turn_before(serve):
    engine = ScriptedEngine(Script(["ok"]))
    client = serve(engine)
    for turn in range(4):
        client.post("/v1/messages", json=agent(turn, session=str(turn)))
    prompts = [request.prompt for request in engine.requests]
    assert len(prompts) == 4
    for before, after in pairwise(prompts):
        assert before.tools == after.tools
        assert after.messages[: len(before.messages)] == before.messages
