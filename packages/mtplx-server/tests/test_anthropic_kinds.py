"""Blocks of a Messages request: each kind has fields of its own, and others are named."""

import pytest

from mtplx_engine.testing import ScriptedEngine

FIELDS = {
    "text": {"text": "a"},
    "thinking": {"thinking": "a", "signature": "x"},
    "tool_use": {"id": "call", "name": "f", "input": {"a": 1}},
    "tool_result": {"tool_use_id": "call", "content": "a", "is_error": True},
}
ROLES = {"text": "user", "thinking": "assistant", "tool_use": "assistant", "tool_result": "user"}
CALL = {"role": "assistant", "content": [{"type": "tool_use", **FIELDS["tool_use"]}]}


def ignored(serve, kind: str, **fields: object) -> list[str]:
    before = [CALL] if kind == "tool_result" else []
    block = {"type": kind, **FIELDS[kind], **fields}
    message = {"role": ROLES[kind], "content": [block]}
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}, *before, message]}
    reply = serve(ScriptedEngine()).post("/v1/messages", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["mtplx"]["ignored_fields"]


@pytest.mark.parametrize("kind", FIELDS)
def test_what_a_kind_has_no_use_for_is_named(serve, kind):
    assert ignored(serve, kind, cache_control={"type": "ephemeral"}) == []
    others = {name: value for each in FIELDS.values() for name, value in each.items()}
    foreign = others.keys() - FIELDS[kind].keys() - {"signature"}
    named = ignored(serve, kind, **{name: others[name] for name in foreign})
    assert set(named) == {f"messages[].content[].{name}" for name in foreign}


@pytest.mark.parametrize("value", [0, 1, "", "a", [0], True])
def test_so_is_what_is_not_known(serve, value):
    assert ignored(serve, "text", odd=value) == ["messages[].content[].odd"]


@pytest.mark.parametrize("value", [None, False, [], {}])
def test_unless_it_says_nothing(serve, value):
    assert ignored(serve, "text", odd=value, citations=value) == []
