"""Every protocol, every scenario: the stream says what the whole reply says, as it always did.

And all protocols say the same. The transcripts lie in `golden/<protocol>/`; `--update-golden`
writes them anew.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from contract import Protocol, Said
from contract_anthropic import MESSAGES
from contract_ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from contract_openai import CHAT, COMPLETIONS
from contract_openai_responses import RESPONSES
from scenarios import SCENARIOS

from mtplx_engine.conversation import Conversation, Message, RawText
from mtplx_engine.errors import EngineError
from mtplx_engine.events import ChatResult
from mtplx_engine.request import ChatRequest
from mtplx_engine.testing import Scored, Script, ScriptedEngine
from mtplx_engine.tools import Tool

GOLDEN = Path(__file__).parent / "golden"
PROTOCOLS = {
    "openai_chat": CHAT,
    "openai_completions": COMPLETIONS,
    "anthropic_messages": MESSAGES,
    "openai_responses": RESPONSES,
    "ollama_chat": OLLAMA_CHAT,
    "ollama_generate": OLLAMA_GENERATE,
}
PACES: list[dict[str, Any]] = [
    {},
    {"stream_pacing": False},
    {"stream_interval": 3},
    {"stream_interval": 2, "stream_pacing": False},
]


@pytest.fixture(params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def protocol(request) -> Protocol:
    return request.param


@pytest.fixture(params=SCENARIOS.keys())
def scenario(request) -> str:
    return request.param


def fails(script: Script) -> bool:
    return any(isinstance(step, EngineError) for step in script.steps)


def body_of(protocol: Protocol, script: Script) -> dict[str, Any]:
    scored = any(isinstance(step, Scored) for step in script.steps)
    return protocol.body | ((protocol.scored or {}) if scored else {})


def test_the_stream_says_what_the_whole_reply_says(play, protocol, scenario):
    script = SCENARIOS[scenario]
    if fails(script):
        pytest.skip("a failure has no whole reply")
    body = body_of(protocol, script)
    bodies = [body] if protocol.several is None else [body, body | protocol.several]
    for settings in PACES:
        client = play(script, **settings)
        for fields in bodies:
            whole = client.post(protocol.path, json=fields)
            assert whole.status_code == 200
            streamed = client.post(protocol.path, json=fields | protocol.stream)
            joined = protocol.join(protocol.payloads(streamed.text))
            assert joined == protocol.whole(whole.text)


def test_all_protocols_say_what_the_engine_says(play, protocol, scenario):
    script = SCENARIOS[scenario]
    client = play(script)
    streamed = client.post(protocol.path, json=body_of(protocol, script) | protocol.stream)
    payloads = protocol.payloads(streamed.text)
    if fails(script):
        with pytest.raises(EngineError) as told:
            ScriptedEngine(script).submit(_asked(protocol)).result()
        assert protocol.failed(payloads) == str(told.value)
        return
    expected = _said(ScriptedEngine(script).submit(_asked(protocol)).result())
    said = protocol.said(protocol.join(payloads))
    if said.reasoning_tokens is None:
        expected = replace(expected, reasoning_tokens=None)
    assert said == expected


def _asked(protocol: Protocol) -> ChatRequest:
    if not protocol.converses:
        return ChatRequest(RawText("hi"))
    return ChatRequest(Conversation((Message("user", "hi"),), tools=(Tool("time"),)))


def _said(result: ChatResult) -> Said:
    usage, finished = result.finished.usage, result.finished
    return Said(
        result.text,
        result.reasoning,
        tuple((call.name, json.loads(call.arguments)) for call in result.calls if call.complete),
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.reasoning_tokens,
        finished.reason,
        finished.stop_sequence,
    )


def test_the_transcript_is_what_it_always_was(play, golden, protocol, scenario, request):
    script = SCENARIOS[scenario]
    client = play(script)
    body = body_of(protocol, script)
    whole = client.post(protocol.path, json=body)
    streamed = client.post(protocol.path, json=body | protocol.stream)
    assert streamed.headers["content-type"] == protocol.content_type
    text = f"# whole: {whole.status_code}\n{_readable(whole)}\n# stream\n{streamed.text}"
    folder = GOLDEN / next(name for name, each in PROTOCOLS.items() if each is protocol)
    golden(folder / f"{scenario.replace(' ', '-').replace(',', '')}.txt", _without_names(text))


def _readable(reply: httpx.Response) -> str:
    return json.dumps(reply.json(), indent=1, ensure_ascii=False)


def _without_names(text: str) -> str:
    """A transcript without what differs between any two requests."""
    text = re.sub(r"\b([a-z]+[-_])[0-9a-f]{24,32}\b", r"\1ID", text)
    text = re.sub(r'("(?:created|created_at|completed_at)": ?)\d+', r"\g<1>0", text)
    return re.sub(r'("created_at": ?)"[^"]*"', r'\1"TIME"', text)
