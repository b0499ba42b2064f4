"""A client that leaves cancels its generation; a client that waits in silence is kept company."""

import json
from threading import Event
from typing import Any

import pytest

from mtplx_engine.events import PrefillProgress
from mtplx_engine.testing import Hold, Script, ScriptedEngine

NEVER = Event()
SILENCES = {
    "in the queue": Script(["a"], before=Hold(NEVER)),
    "in the prompt": Script([PrefillProgress(1, 9), Hold(NEVER), "a"]),
    "in the answer": Script(["a", Hold(NEVER), "b"]),
}


def request(**fields: Any) -> bytes:
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}], **fields}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize("script", SILENCES.values(), ids=SILENCES.keys())
@pytest.mark.parametrize("stream", [False, True])
def test_leaving_cancels(serve, connect, wait_for, script, stream):
    engine = ScriptedEngine(script)
    client = serve(engine)
    connection = connect(client)
    connection.sendall(request(stream=stream))
    wait_for(lambda: engine.status().active == 1)
    connection.close()
    assert engine.wait_idle(30)
    assert engine.cancelled == engine.requests
    assert len(engine.cancelled) == 1
    assert client.get("/health").status_code == 200


def test_leaving_after_some_of_the_stream_cancels(serve):
    engine = ScriptedEngine(Script(["a"] * 3 + [Hold(NEVER)]))
    client = serve(engine)
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        lines = response.iter_lines()
        next(line for line in lines if '"content":"a' in line)
    assert engine.wait_idle(30)
    assert len(engine.cancelled) == 1


def test_an_answer_that_was_read_to_its_end_is_not_cancelled(serve):
    engine = ScriptedEngine()
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    assert serve(engine).post("/v1/chat/completions", json=body).text.endswith("data: [DONE]\n\n")
    assert engine.wait_idle(30)
    assert engine.cancelled == []


@pytest.mark.parametrize("place", ["in the prompt", "in the answer"])
def test_silence_is_broken_by_comments_and_loses_nothing(serve, place):
    release = Event()
    steps = [PrefillProgress(1, 9), "a", "b"]
    steps.insert(1 if place == "in the prompt" else 2, Hold(release))
    client = serve(ScriptedEngine(Script(steps)), keepalive_s=0.01)
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        lines = response.iter_lines()
        assert '"role":"assistant"' in next(lines)
        comments = (line for line in lines if line == ": keep-alive")
        next(comments)
        next(comments)
        release.set()
        chunks = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert chunks.pop() == "[DONE]"
    deltas = [json.loads(chunk)["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert "".join(deltas).endswith("b")
