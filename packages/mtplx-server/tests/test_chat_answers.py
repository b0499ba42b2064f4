"""The streamed and the unstreamed answer, for every way in which a generation can go."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenarios import CALL, SCENARIOS

from mtplx_client import ChatCompletionChunk, accumulate
from mtplx_engine.errors import (
    Cancelled,
    ContextOverflow,
    EngineFailed,
    InsufficientMemory,
    InvalidRequest,
    NonFiniteLogits,
    Overloaded,
)
from mtplx_engine.events import (
    Event,
    Finished,
    ReasoningDelta,
    Speculation,
    Started,
    TextDelta,
    Timings,
    Usage,
)
from mtplx_engine.runtime.generation import fold
from mtplx_engine.testing import Script, ScriptedEngine
from mtplx_server.http.framing import FRAMINGS
from mtplx_server.http.merging import Burst
from mtplx_server.http.pacing import Pace
from mtplx_server.http.stream import pump
from mtplx_server.protocols.openai_chat.encode import ChatEncoder
from mtplx_server.protocols.openai_stream import Heading
from mtplx_server.protocols.report import Asked

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}

TIME = {"type": "function", "function": {"name": "time", "parameters": {"type": "object"}}}
TOOLS = {"tools": [TIME]}


def data_of(text: str) -> list[str]:
    """Payloads of a body of server-sent events; each must be one `data:` line."""
    frames = text.split("\n\n")
    assert frames.pop() == ""
    assert all(frame.startswith("data: ") for frame in frames)
    return [frame.removeprefix("data: ") for frame in frames]


def test_without_include_usage_no_chunk_speaks_of_usage(serve):
    text = serve().post("/v1/chat/completions", json=BODY | {"stream": True}).text
    chunks = [json.loads(each) for each in data_of(text)[:-1]]
    assert all("usage" not in chunk and chunk["choices"] for chunk in chunks)


REPORT = {
    "model": "org/scripted",
    "requested_model": None,
    "mode": "mtp",
    "depth": 2,
    "acceptance": "greedy",
    "rounds": 3,
    "drafted": [3, 3],
    "accepted": [2, 2],
    "acceptance_rate": 0.667,
    "tokens_per_round": 0.333,
    "copied": 0,
    "copies_accepted": 0,
    "forced": 0,
    "prompt_tokens": 7,
    "cached_tokens": 0,
    "completion_tokens": 2,
    "reasoning_tokens": 1,
    "queue_s": 0.001,
    "prefill_s": 0.25,
    "decode_s": 0.5,
    "first_token_s": 0.251,
    "total_s": 0.751,
    "prefill_tokens_per_s": 28.0,
    "tokens_per_s": 2.0,
    "peak_memory": 0,
    "kv": None,
    "stop_sequence": None,
    "grammar": None,
    "effort": None,
    "tool_dialect": None,
    "tool_calls": 0,
    "broken_calls": 0,
    "dropped_calls": 0,
    "ignored_fields": [],
    "cache": {
        "source": None,
        "cached_tokens": 0,
        "cold_because": "off",
        "prefix_diverged_at": None,
        "session": None,
    },
}


def test_an_answer_in_full(serve):
    script = Script(["hm</think>", "Hello"], thinks=True)
    response = serve(ScriptedEngine(script)).post("/v1/chat/completions", json=BODY)
    answer = response.json()
    assert answer.pop("id").startswith("chatcmpl-")
    assert isinstance(answer.pop("created"), int)
    assert answer == {
        "object": "chat.completion",
        "model": "org/scripted",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "reasoning_content": "hm"},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 2,
            "total_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
        "mtplx": {"request_id": response.headers["x-request-id"], **REPORT},
    }


def answer_to(serve, script: Script, **fields: Any) -> dict[str, Any]:
    reply = serve(ScriptedEngine(script)).post("/v1/chat/completions", json=BODY | fields)
    assert reply.status_code == 200
    return reply.json()


def test_calls_in_full(serve):
    answer = answer_to(serve, SCENARIOS["thoughts, text, two calls"], **TOOLS)
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    message = choice["message"]
    assert (message["content"], message["reasoning_content"]) == ("Let me see.", "hm")
    first, second = message["tool_calls"]
    assert first.pop("id") != second.pop("id")
    expected = {"name": "time", "arguments": '{"zone": "Asia/Tokyo"}'}
    assert first == second == {"type": "function", "function": expected}
    assert (answer["mtplx"]["tool_calls"], answer["mtplx"]["tool_dialect"]) == (2, "json_object")


def test_a_second_call_that_a_limit_cuts_at_its_mark_was_cut(serve):
    answer = answer_to(serve, SCENARIOS["a second call that is cut at its mark"], **TOOLS)
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "length"
    assert len(choice["message"]["tool_calls"]) == 1


def test_only_a_call_has_no_content(serve):
    assert (
        answer_to(serve, SCENARIOS["a call"], **TOOLS)["choices"][0]["message"]["content"] is None
    )


def test_without_parallel_calls_the_first_counts(serve):
    script = SCENARIOS["thoughts, text, two calls"]
    answer = answer_to(serve, script, **TOOLS, parallel_tool_calls=False)
    assert len(answer["choices"][0]["message"]["tool_calls"]) == 1
    assert answer["mtplx"]["dropped_calls"] == 1


@pytest.mark.parametrize("end", ["", "<tool_call>", CALL[:30], CALL[:50], CALL])
def test_what_comes_of_a_dropped_call_is_dropped_too(serve, end):
    script = Script([CALL, "\n", end], reason="length")
    answer = answer_to(serve, script, **TOOLS, parallel_tool_calls=False)
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert len(choice["message"]["tool_calls"]) == 1
    assert choice["message"]["content"] is None


def test_a_cut_call_cannot_be_taken_for_a_whole_one(serve):
    (choice,) = answer_to(serve, SCENARIOS["a call that is cut"], **TOOLS)["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"] == "Well"
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])


def test_a_broken_call_is_shown_and_does_not_count(serve):
    answer = answer_to(serve, SCENARIOS["a broken call"], **TOOLS)
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == CALL.replace("}}", "")
    assert answer["mtplx"]["broken_calls"] == 1


def test_without_tools_nothing_is_a_call(serve):
    for fields in ({}, TOOLS | {"tool_choice": "none"}):
        (choice,) = answer_to(serve, SCENARIOS["a call"], **fields)["choices"]
        assert choice["message"] == {"role": "assistant", "content": CALL}
        assert choice["finish_reason"] == "stop"


def test_each_call_is_named_once_and_numbered(serve):
    script = SCENARIOS["thoughts, text, two calls"]
    body = BODY | TOOLS | {"stream": True}
    text = serve(ScriptedEngine(script)).post("/v1/chat/completions", json=body).text
    deltas = [json.loads(each)["choices"][0]["delta"] for each in data_of(text)[:-1]]
    pieces = [piece for delta in deltas for piece in delta.get("tool_calls", ())]
    firsts = [piece for piece in pieces if "id" in piece]
    assert [piece["index"] for piece in firsts] == [0, 1]
    assert [piece["function"] for piece in firsts] == [{"name": "time", "arguments": ""}] * 2
    assert all(piece["type"] == "function" for piece in firsts)
    assert all(set(piece["function"]) == {"arguments"} for piece in pieces if "id" not in piece)
    assert [piece["index"] for piece in pieces] == sorted(piece["index"] for piece in pieces)


def test_scores_in_full(serve):
    answer = answer_to(serve, SCENARIOS["scores"], logprobs=True, top_logprobs=2)
    sampled = {"token": "é", "logprob": -0.25, "bytes": [0xC3, 0xA9]}
    likely = {"token": "\ufffd", "logprob": -9999.0, "bytes": [0xC3]}
    assert answer["choices"][0]["logprobs"] == {
        "content": [{**sampled, "top_logprobs": [sampled, likely]}, {**likely, "top_logprobs": []}],
        "refusal": None,
    }


def test_several_answers_are_counted_together(serve):
    scripts = iter([Script(["a"]), Script(["b", "c"]), Script(["d</think>", "e"], thinks=True)])
    engine = ScriptedEngine(lambda _: next(scripts))
    answer = serve(engine).post("/v1/chat/completions", json=BODY | {"n": 3}).json()
    said = [choice["message"]["content"] for choice in answer["choices"]]
    assert said == ["a", "bc", "e"]
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert answer["usage"]["prompt_tokens"] == 7
    assert answer["usage"]["completion_tokens"] == 5
    assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 1}
    assert answer["mtplx"]["rounds"] == 9
    assert answer["mtplx"]["drafted"] == [9, 9]


ERRORS = {
    "invalid": (InvalidRequest("No.", "stop"), 400, None, "stop"),
    "too long": (ContextOverflow(5000, 4096), 400, "context_length_exceeded", "messages"),
    "overloaded": (Overloaded("Full.", 3), 503, "server_overloaded", None),
    "engine gone": (EngineFailed("Gone."), 503, "engine_failed", None),
    "cancelled": (Cancelled("Cancelled."), 503, "cancelled", None),
    "no memory": (
        InsufficientMemory(needed=3 * 10**9, available=10**9, prompt_tokens=9, answer_tokens=1),
        507,
        "insufficient_memory",
        None,
    ),
    "not finite": (NonFiniteLogits("NaN."), 500, "non_finite_logits", None),
}


@pytest.mark.parametrize(("error", "status", "code", "param"), ERRORS.values(), ids=ERRORS.keys())
@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_before_the_answer_is_a_status(serve, error, status, code, param, stream):
    client = serve(ScriptedEngine(Script(rejection=error)))
    response = client.post("/v1/chat/completions", json=BODY | {"stream": stream})
    assert response.status_code == status
    kind = "invalid_request_error" if status == 400 else "server_error"
    expected = {"message": str(error), "type": kind, "param": param, "code": code}
    assert response.json() == {"error": expected}
    assert ("retry-after" in response.headers) == (status == 503)


@pytest.mark.parametrize(("error", "status", "code", "param"), ERRORS.values(), ids=ERRORS.keys())
def test_a_failure_in_the_middle_ends_both_kinds_of_answer(serve, error, status, code, param):
    client = serve(ScriptedEngine(Script(["begun", error])))
    whole = client.post("/v1/chat/completions", json=BODY)
    assert whole.status_code == status
    streamed = client.post("/v1/chat/completions", json=BODY | {"stream": True})
    assert streamed.status_code == 200
    *_, last, end = data_of(streamed.text)
    assert end == "[DONE]"
    assert json.loads(last) == whole.json()
    assert json.loads(last)["error"]["code"] == code


def test_a_fault_of_ours_tells_the_log_and_not_the_client(serve, caplog):
    class Broken(ScriptedEngine):
        def submit_batch(self, requests, choices):
            raise RuntimeError("secret")

    response = serve(Broken()).post("/v1/chat/completions", json=BODY)
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_error"
    assert "secret" not in response.text
    assert "secret" in caplog.text
    assert response.headers["x-request-id"] in caplog.text


def test_a_fault_of_ours_in_a_stream_tells_the_log_and_not_the_client(caplog):
    sent: list[bytes] = []

    async def send(data: bytes) -> None:
        sent.append(data)

    async def events() -> AsyncIterator[Burst]:
        yield 0, [TextDelta("begun")]
        raise RuntimeError("secret")

    stream = encoder([], include_usage=False).stream()
    rest = {"framing": FRAMINGS["sse"], "pace": Pace(), "keepalive_s": 60, "request_id": "req_1"}
    asyncio.run(pump([Started(3)], events(), stream, send, **rest))
    *_, last, _ = data_of(b"".join(sent).decode())
    assert json.loads(last)["error"]["code"] == "internal_error"
    assert "secret" not in last
    assert "secret" in caplog.text
    assert "req_1" in caplog.text


def test_max_tokens_ends_the_answer(serve):
    answer = serve().post("/v1/chat/completions", json=BODY | {"max_tokens": 1}).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert answer["mtplx"]["tokens_per_s"] is None


def test_a_full_queue_is_refused_at_once(serve):
    engine = ScriptedEngine(capacity=0)
    response = serve(engine).post("/v1/chat/completions", json=BODY | {"stream": True})
    assert response.status_code == 503
    assert response.headers["retry-after"] == "2"


def encoder(ignored: list[str], *, include_usage: bool) -> ChatEncoder:
    asked = Asked("req_1", "m", None, ignored)
    return ChatEncoder(Heading("chatcmpl-1", 1, 1, include_usage, scored=False, asked=asked))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(
    deltas=st.lists(st.one_of(st.builds(TextDelta, TEXT), st.builds(ReasoningDelta, TEXT))),
    include_usage=st.booleans(),
    reason=st.sampled_from(["stop", "length"]),
    decode_s=st.sampled_from([0.0, 0.3]),
    ignored=st.lists(TEXT),
)
def test_any_events_give_the_same_answer_both_ways(
    deltas, include_usage, reason, decode_s, ignored
):
    speculation = Speculation("plain", 0, None, len(deltas), (), ())
    usage = Usage(3, len(deltas), 0)
    end = Finished(reason, None, usage, speculation, Timings(0.0, 0.1, decode_s))
    events: list[Event] = [Started(3), *deltas, end]
    writer = encoder(ignored, include_usage=include_usage)
    stream = writer.stream()
    frames = [
        *stream.open([Started(3)]),
        *(f for e in events for f in stream.feed(0, e)),
        *stream.close(),
    ]
    assert frames.pop().data == "[DONE]"
    assert not any("\n" in frame.data or "\r" in frame.data for frame in frames)

    joined = accumulate(ChatCompletionChunk.model_validate_json(f.data) for f in frames)
    whole = writer.reply([fold(iter(events))])
    assert joined.choices == whole.choices
    assert joined.mtplx == whole.mtplx
    assert joined.usage == (whole.usage if include_usage else None)
