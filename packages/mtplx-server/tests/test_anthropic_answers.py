"""Anthropic's answers: their blocks and ends, errors, signs of life, counts."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from contract_anthropic import events, join, whole
from hypothesis import given
from hypothesis import strategies as st
from scenarios import CALL, SCENARIOS

from mtplx_engine import Engine, EngineOptions
from mtplx_engine.errors import ContextOverflow, EngineFailed, InsufficientMemory, InvalidRequest
from mtplx_engine.events import (
    CallBroken,
    CallDelta,
    CallEnded,
    CallStarted,
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
from mtplx_engine.testing import Hold, Script, ScriptedEngine
from mtplx_engine.tiny import write_tiny_model
from mtplx_server.errors import Problem
from mtplx_server.http.framing import FRAMINGS
from mtplx_server.http.merging import Burst
from mtplx_server.http.pacing import Pace
from mtplx_server.http.stream import pump
from mtplx_server.protocols.anthropic_messages.encode import MessagesEncoder
from mtplx_server.protocols.anthropic_messages.error import error_reply
from mtplx_server.protocols.anthropic_messages.heading import Heading
from mtplx_server.protocols.report import Asked

HI = {"role": "user", "content": "hi"}
BODY: dict[str, Any] = {"messages": [HI], "max_tokens": 100}
TIME = {"name": "time", "input_schema": {"type": "object"}}
CLIENT = {"anthropic-version": "2023-06-01"}


def answer_to(serve, script: Script, **fields: Any) -> dict[str, Any]:
    reply = serve(ScriptedEngine(script)).post("/v1/messages", json=BODY | fields)
    assert reply.status_code == 200
    return reply.json()


def test_an_answer_in_full(serve):
    script = Script(["hm</think>", "It is noon.", CALL], thinks=True)
    reply = serve(ScriptedEngine(script)).post("/v1/messages", json=BODY | {"tools": [TIME]})
    answer = reply.json()
    assert answer.pop("id").startswith("msg_")
    assert answer["content"][2].pop("id").startswith("toolu_")
    report = answer.pop("mtplx")
    assert report["request_id"] == reply.headers["request-id"]
    assert (report["tool_calls"], report["ignored_fields"]) == (1, [])
    assert answer == {
        "type": "message",
        "role": "assistant",
        "model": "org/scripted",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "mtplx"},
            {"type": "text", "text": "It is noon."},
            {"type": "tool_use", "name": "time", "input": {"zone": "Asia/Tokyo"}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 7,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 3,
            "output_tokens_details": {"thinking_tokens": 1},
        },
    }


@pytest.mark.parametrize(
    ("script", "fields", "reason", "sequence"),
    [
        (SCENARIOS["text"], {}, "end_turn", None),
        (SCENARIOS["stop string"], {}, "stop_sequence", "two"),
        (SCENARIOS["a call"], {"tools": [TIME]}, "tool_use", None),
        (SCENARIOS["text"], {"max_tokens": 2}, "max_tokens", None),
        (
            Script(["a", "b"], reason="length", prompt_tokens=4094),
            {},
            ("model_context_window_exceeded"),
            None,
        ),
        (
            Script(["a", "b"], reason="length", prompt_tokens=4094),
            {"max_tokens": 2},
            ("max_tokens"),
            None,
        ),
    ],
)
def test_why_it_ended(serve, script, fields, reason, sequence):
    answer = answer_to(serve, script, **fields)
    assert (answer["stop_reason"], answer["stop_sequence"]) == (reason, sequence)


@pytest.mark.parametrize("name", ["a call that is cut", "a broken call", "a call that is none"])
def test_only_whole_calls_are_shown(serve, name):
    answer = answer_to(serve, SCENARIOS[name], tools=[TIME])
    assert [block["type"] for block in answer["content"]] == ["text"]
    assert answer["stop_reason"] != "tool_use"


def test_half_a_character_in_a_call_becomes_a_sign(serve):
    call = CALL.replace("Asia/Tokyo", r"\ud83d")
    (block,) = answer_to(serve, Script([call]), tools=[TIME])["content"]
    assert block["input"] == {"zone": "\ufffd"}


def test_a_number_beyond_all_numbers_is_still_json(serve):
    call = CALL.replace('"Asia/Tokyo"', "1e999")
    (block,) = answer_to(serve, Script([call]), tools=[TIME])["content"]
    assert block["input"] == {"zone": sys.float_info.max}


ERRORS = {
    "invalid": (InvalidRequest("No.", "stop"), 400, "invalid_request_error", "stop: No."),
    "too long": (
        ContextOverflow(5000, 4096),
        400,
        "invalid_request_error",
        "prompt is too long: 5000 tokens > 4096 maximum",
    ),
    "engine gone": (EngineFailed("Gone."), 503, "overloaded_error", "Gone."),
    "no memory": (
        InsufficientMemory(needed=3 * 10**9, available=10**9, prompt_tokens=9, answer_tokens=1),
        507,
        "api_error",
        None,
    ),
}


@pytest.mark.parametrize(("error", "status", "kind", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_a_failure_before_and_amid_an_answer(serve, error, status, kind, message):
    refused = serve(ScriptedEngine(Script(rejection=error)))
    reply = refused.post("/v1/messages", json=BODY | {"stream": True})
    assert reply.status_code == status
    expected = {"type": kind, "message": message or str(error)}
    request_id = reply.headers["request-id"]
    assert reply.json() == {"type": "error", "error": expected, "request_id": request_id}
    broken = serve(ScriptedEngine(Script(["begun", error])))
    streamed = broken.post("/v1/messages", json=BODY | {"stream": True})
    last = json.loads(events(streamed.text)[-1])
    assert (last["type"], last["error"]) == ("error", expected)


KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    426: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}


def test_each_status_has_its_word():
    told = {status: Problem(status, "server_error", "No.") for status in KINDS}
    assert {status: error_reply(each, "r").error.type for status, each in told.items()} == KINDS


def told(reply: httpx.Response) -> tuple[int, str]:
    body = reply.json()
    assert set(body) == {"type", "error", "request_id"}
    return reply.status_code, body["error"]["type"]


def test_every_error_that_its_clients_get_has_its_envelope(serve):
    client = serve(max_body_bytes=1000, strict_model=True)
    path = "/v1/messages"
    assert told(client.get(path)) == (405, "invalid_request_error")
    assert told(client.get(f"{path}/batches")) == (404, "not_found_error")
    assert told(client.post(path, content=b"x" * 2000)) == (413, "request_too_large")
    assert told(client.post(path, content=b"{")) == (400, "invalid_request_error")
    assert told(client.post(path, json=BODY | {"model": "m"})) == (404, "not_found_error")
    assert told(client.get("/v1/nothing", headers=CLIENT)) == (404, "not_found_error")
    assert told(client.get("/v1/models/m", headers=CLIENT)) == (404, "not_found_error")


def encoder(*, thinks: bool = True) -> MessagesEncoder:
    asked = Asked("req_1", "m", None, [])
    return MessagesEncoder(Heading("msg_1", asked, 100, 4096, thinks))


def finished(reason: Any = "stop") -> Finished:
    speculation = Speculation("plain", 0, None, 5, (), ())
    return Finished(reason, None, Usage(3, 5, 0), speculation, Timings(0.0, 0.1, 0.2))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
DELTA = st.builds(TextDelta, TEXT) | st.builds(ReasoningDelta, TEXT)
IDLE = None
CALLS = st.sampled_from([CallEnded, CallBroken]).map(
    lambda end: [CallStarted(0, "f"), CallDelta(0, '{"a"'), IDLE, CallDelta(0, ": 1}"), end(0)]
)


def numbered(steps: list[Any]) -> list[Event | None]:
    """The same events, with calls numbered as they come."""
    calls = -1
    made: list[Event | None] = []
    for each in steps:
        calls += isinstance(each, CallStarted)
        is_call = isinstance(each, CallStarted | CallDelta | CallEnded | CallBroken)
        fields = {"text": each.text} if isinstance(each, CallDelta) else {}
        if isinstance(each, CallStarted):
            fields = {"name": each.name}
        made.append(type(each)(index=calls, **fields) if is_call else each)
    return made


@given(
    steps=st.lists(DELTA.map(lambda delta: [delta]) | st.just([IDLE]) | CALLS),
    thinks=st.booleans(),
)
def test_any_events_and_silences_give_the_same_answer_both_ways(steps, thinks):
    told = [Started(3), *numbered([each for step in steps for each in step]), finished()]
    writer = encoder(thinks=thinks)
    stream = writer.stream()
    frames = stream.open([Started(3)])
    for each in told:
        frames += stream.idle() if each is IDLE else stream.feed(0, each)
    frames += stream.close()
    assert all(frame.event == json.loads(frame.data)["type"] for frame in frames)
    result = fold(iter([each for each in told if each is not IDLE]))
    assert merged(join([frame.data for frame in frames])) == merged(
        whole(writer.reply([result]).to_json())
    )


def merged(message: Any) -> Any:
    """Without the cuts that silences make in a text or a thought."""
    blocks: list[Any] = []
    for block in message["content"]:
        kind = block["type"]
        if blocks and kind == blocks[-1]["type"] != "tool_use":
            blocks[-1][kind] += block[kind]
        else:
            blocks.append(block)
    return message | {"content": blocks}


@pytest.mark.parametrize(("thinks", "kind"), [(True, "thinking"), (False, "text")])
def test_a_silence_is_broken_by_changes_that_say_nothing(thinks, kind):
    stream = encoder(thinks=thinks).stream()
    stream.open([Started(3)])
    first, second, change = [json.loads(each.data) for each in [*stream.idle(), *stream.idle()]]
    assert first["content_block"]["type"] == kind
    assert second == change
    assert change["delta"] == {"type": f"{kind}_delta", kind: ""}
    shown = stream.feed(0, TextDelta("a"))
    ended = [json.loads(each.data) for each in shown if each.event == "content_block_stop"]
    assert len(ended) == thinks


def test_signs_of_life_come_while_nothing_else_does(serve):
    release = threading.Event()
    client = serve(ScriptedEngine(Script([Hold(release), "ok"])), keepalive_s=0.02)
    lines = []
    with client.stream("POST", "/v1/messages", json=BODY | {"stream": True}) as reply:
        for line in reply.iter_lines():
            lines.append(line)
            if '"thinking_delta"' in line:
                release.set()
    content = join(events("\n".join(lines) + "\n"))["content"]
    assert content == [{"type": "text", "text": "ok"}]


def test_signs_of_life_come_while_a_call_is_written():
    sent: list[bytes] = []

    async def send(data: bytes) -> None:
        sent.append(data)

    async def written() -> AsyncIterator[Burst]:
        yield 0, [CallStarted(0, "f")]
        while b"thinking_delta" not in b"".join(sent):
            await asyncio.sleep(0.001)
            yield 0, [CallDelta(0, " ")]
        yield 0, [CallDelta(0, "{}"), CallEnded(0), finished("tool_calls")]

    async def stream() -> None:
        rest = {"framing": FRAMINGS["sse"], "pace": Pace(), "request_id": "req_1"}
        async with asyncio.timeout(30):
            await pump([Started(3)], written(), encoder().stream(), send, keepalive_s=0.02, **rest)

    asyncio.run(stream())
    (block,) = join(events(b"".join(sent).decode()))["content"]
    assert block == {"type": "tool_use", "name": "f", "input": {}}


def test_a_count_is_what_the_request_then_costs(serve, tmp_path):
    folder = write_tiny_model(tmp_path / "tiny", "llama")
    client = serve(Engine.open(EngineOptions(model=str(folder))))
    use = {"type": "tool_use", "id": "1", "name": "time", "input": {"zone": "今"}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "noon"}
    turns = [
        HI,
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, use]},
        {"role": "user", "content": [result, {"type": "text", "text": "And?"}]},
    ]
    for fields in (
        {},
        {"system": "Be brief."},
        {"tools": [TIME], "messages": turns},
        {"tools": [TIME], "tool_choice": {"type": "any"}, "thinking": {"type": "disabled"}},
    ):
        body = {"messages": [HI]} | fields
        counted = client.post("/v1/messages/count_tokens", json=body)
        answer = client.post("/v1/messages", json=body | {"max_tokens": 1})
        usage = answer.json()["usage"]
        computed, kept = usage["input_tokens"], usage["cache_read_input_tokens"]
        assert counted.json() == {"input_tokens": computed + kept}


def test_a_prompt_that_does_not_fit_is_counted_and_not_answered(serve, tmp_path):
    folder = write_tiny_model(tmp_path / "tiny", "llama")
    engine = Engine.open(EngineOptions(model=str(folder)))
    client = serve(engine)
    long = {"messages": [{"role": "user", "content": "x " * engine.model.context_length}]}
    counted = client.post("/v1/messages/count_tokens", json=long).json()["input_tokens"]
    assert counted > engine.model.context_length
    refused = client.post("/v1/messages", json=long | {"max_tokens": 1})
    assert refused.status_code == 400
    start = f"prompt is too long: {counted} tokens > {engine.model.context_length} maximum"
    assert refused.json()["error"]["message"] == start
