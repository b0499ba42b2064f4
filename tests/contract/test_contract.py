"""Every protocol, every scenario: the stream says what the whole reply says, as it always did.

The transcripts lie in `golden/<protocol>/`; `--update-golden` writes them anew.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from scenarios import SCENARIOS

from mtplx_client import ChatCompletion, ChatCompletionChunk, accumulate
from mtplx_client.wire.completions import Completion
from mtplx_engine.errors import EngineError
from mtplx_engine.testing import Scored, Script

GOLDEN = Path(__file__).parent / "golden"
TIME = {"type": "function", "function": {"name": "time", "parameters": {"type": "object"}}}
PACES: list[dict[str, Any]] = [
    {},
    {"stream_pacing": False},
    {"stream_interval": 3},
    {"stream_interval": 2, "stream_pacing": False},
]


@dataclass(frozen=True)
class Protocol:
    """One API, as this suite talks to it.

    Attributes:
        path: Of its endpoint.
        body: A request that can have every kind of answer.
        stream: What makes it a stream.
        scored: What asks for log-probabilities.
        join: Turns the payloads of a stream into what the whole reply would be.
        whole: Reads the whole reply.
    """

    path: str
    body: dict[str, Any]
    stream: dict[str, Any]
    scored: dict[str, Any]
    join: Callable[[list[str]], Any]
    whole: Callable[[str], Any]


def join_chat(payloads: list[str]) -> Any:
    assert payloads.pop() == "[DONE]"
    return chat(accumulate(map(ChatCompletionChunk.model_validate_json, payloads)))


def chat(answer: ChatCompletion) -> Any:
    found = answer.model_dump(exclude={"id": True, "created": True, "mtplx": {"request_id"}})
    for choice in found["choices"]:
        for call in choice["message"].get("tool_calls") or ():
            assert call.pop("id").startswith("call_")
            call.pop("index")
    return found


def join_completion(payloads: list[str]) -> Any:
    assert payloads.pop() == "[DONE]"
    *chunks, last = map(Completion.model_validate_json, payloads)
    assert last.choices == []
    parts = [part for chunk in chunks for part in chunk.choices]
    indices = sorted({part.index for part in parts})
    choices = [[part for part in parts if part.index == at] for at in indices]
    reports = [chunk.mtplx for chunk in chunks if chunk.mtplx is not None]
    return list(map(completion_choice, choices)), last.usage, [_named(each) for each in reports]


def completion(answer: Completion) -> Any:
    choices = [completion_choice([choice]) for choice in answer.choices]
    return choices, answer.usage, [_named(answer.mtplx)]


def completion_choice(parts: list[Any]) -> Any:
    scores = [part.logprobs for part in parts if part.logprobs is not None]
    lists = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    reasons = [part.finish_reason for part in parts if part.finish_reason]
    joined = [[entry for each in scores for entry in getattr(each, name)] for name in lists]
    return "".join(part.text for part in parts), reasons, joined


def _named(report: Any) -> Any:
    return report.model_dump(exclude={"request_id"})


USAGE = {"stream": True, "stream_options": {"include_usage": True}}
PROTOCOLS = {
    "openai_chat": Protocol(
        path="/v1/chat/completions",
        body={"messages": [{"role": "user", "content": "hi"}], "tools": [TIME]},
        stream=USAGE,
        scored={"logprobs": True, "top_logprobs": 2},
        join=join_chat,
        whole=lambda text: chat(ChatCompletion.model_validate_json(text)),
    ),
    "openai_completions": Protocol(
        path="/v1/completions",
        body={"prompt": "hi"},
        stream=USAGE,
        scored={"logprobs": 2},
        join=join_completion,
        whole=lambda text: completion(Completion.model_validate_json(text)),
    ),
}


@pytest.fixture(params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def protocol(request) -> Protocol:
    return request.param


@pytest.fixture(params=SCENARIOS.keys())
def scenario(request) -> str:
    return request.param


def body_of(protocol: Protocol, script: Script) -> dict[str, Any]:
    scored = any(isinstance(step, Scored) for step in script.steps)
    return protocol.body | (protocol.scored if scored else {})


def payloads_of(text: str) -> list[str]:
    """Payloads of server-sent events; each must be one `data:` line."""
    frames = text.split("\n\n")
    assert frames.pop() == ""
    assert all(frame.startswith("data: ") for frame in frames)
    return [frame.removeprefix("data: ") for frame in frames]


def test_the_stream_says_what_the_whole_reply_says(play, protocol, scenario):
    script = SCENARIOS[scenario]
    if any(isinstance(step, EngineError) for step in script.steps):
        pytest.skip("a failure has no whole reply")
    body = body_of(protocol, script)
    for settings in PACES:
        client = play(script, **settings)
        for fields in (body, body | {"n": 3}):
            whole = client.post(protocol.path, json=fields)
            assert whole.status_code == 200
            streamed = client.post(protocol.path, json=fields | protocol.stream)
            joined = protocol.join(payloads_of(streamed.text))
            assert joined == protocol.whole(whole.text)


def test_the_transcript_is_what_it_always_was(play, golden, protocol, scenario, request):
    script = SCENARIOS[scenario]
    client = play(script)
    body = body_of(protocol, script)
    whole = client.post(protocol.path, json=body)
    streamed = client.post(protocol.path, json=body | protocol.stream)
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    text = f"# whole: {whole.status_code}\n{_readable(whole)}\n# stream\n{streamed.text}"
    folder = GOLDEN / next(name for name, each in PROTOCOLS.items() if each is protocol)
    golden(folder / f"{scenario.replace(' ', '-').replace(',', '')}.txt", _without_names(text))


def _readable(reply: httpx.Response) -> str:
    return json.dumps(reply.json(), indent=1, ensure_ascii=False)


def _without_names(text: str) -> str:
    """A transcript without what differs between any two requests."""
    text = re.sub(r"(chatcmpl-|cmpl-|req_)[0-9a-f]{32}", r"\1ID", text)
    text = re.sub(r"call_[0-9a-f]{24}", "call_ID", text)
    return re.sub(r'("created": ?)\d+', r"\g<1>0", text)
