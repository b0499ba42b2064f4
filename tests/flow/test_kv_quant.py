"""Over HTTP, with a real model: quantised keys and values in every protocol."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from contract import Protocol
from contract_anthropic import MESSAGES
from contract_ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from contract_openai import CHAT, COMPLETIONS
from contract_openai_responses import RESPONSES

from mtplx_engine import Engine, EngineOptions
from mtplx_engine.tiny import write_tiny_model
from mtplx_server.testing import serving

PROTOCOLS = [CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA_CHAT, OLLAMA_GENERATE]
SEEDED = {"temperature": 1, "seed": 5}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server over a model with heads 64 wide, whose keys and values have 8 bits by default."""
    folder = write_tiny_model(tmp_path_factory.mktemp("models") / "wide", head_dim=64)
    engine = Engine.open(EngineOptions(model=str(folder), mtp="on", kv_quant="q8"))
    with serving(engine) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture(params=PROTOCOLS, ids=lambda protocol: protocol.path)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    found: Protocol = request.param
    return found


def ask(client: httpx.Client, protocol: Protocol, **fields: Any) -> httpx.Response:
    ollama = protocol.path.startswith("/api/")
    most = "max_output_tokens" if protocol is RESPONSES else "max_tokens"
    given = {"options": fields | {"num_predict": 30}} if ollama else fields | {most: 30}
    body = {name: value for name, value in protocol.body.items() if name != "tools"}
    return client.post(protocol.path, json=body | given)


def test_the_format_is_the_requests_or_the_engines(wide: httpx.Client, protocol: Protocol) -> None:
    for fields, kv in [
        ({}, "q8 group 64"),
        ({"kv_bits": 4, "kv_group_size": 32}, "q4 group 32"),
        ({"kv_bits": 0}, None),
        ({"quantized_kv_start": 5000}, None),
    ]:
        reply = ask(wide, protocol, **fields)
        assert reply.status_code == 200, reply.text
        assert reply.json()["mtplx"]["kv"] == kv


def test_a_seeded_answer_does_not_depend_on_drafts(wide: httpx.Client, protocol: Protocol) -> None:
    said = [
        protocol.said(protocol.whole(ask(wide, protocol, kv_bits=4, depth=depth, **SEEDED).text))
        for depth in (0, 1, 3)
    ]
    assert said[0] == said[1] == said[2]
    assert said[0].completion_tokens > 1


def test_what_the_model_cannot_is_refused(client: httpx.Client, protocol: Protocol) -> None:
    """Heads that are 16 wide."""
    reply = ask(client, protocol, kv_bits=8)
    assert reply.status_code == 400
    assert "kv_bits 8 is not possible" in reply.text
    assert "16 wide" in reply.text


def test_groups_that_do_not_fit_are_refused(wide: httpx.Client, protocol: Protocol) -> None:
    reply = ask(wide, protocol, kv_group_size=128)
    assert reply.status_code == 400
    assert "kv_group_size 128" in reply.text
