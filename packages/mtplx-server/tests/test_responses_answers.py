"""Answers of Responses, whole and streamed; that both say the same, the contract suite sees to."""

import json
import threading
from typing import Any

import pytest
from scenarios import SCENARIOS

from mtplx_client.wire.responses_output import Response
from mtplx_engine.errors import ContextOverflow, EngineFailed, Overloaded
from mtplx_engine.testing import Hold, Script, ScriptedEngine

TIME = {"type": "function", "name": "time", "parameters": {"type": "object"}}
URL = "/v1/responses"
# Of a response to the request of the test below, what is the same each time.
TOOL = {"type": "function", "name": "time", "description": None, "parameters": None}
REPEATED = {
    "object": "response",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "org/scripted",
    "instructions": "Be brief.",
    "tools": [{**TOOL, "strict": False}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "temperature": 0.5,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "max_output_tokens": 100,
    "max_tool_calls": None,
    "metadata": {"a": "b"},
    "truncation": "disabled",
    "store": False,
    "background": False,
    "previous_response_id": None,
    "service_tier": "default",
    "prompt_cache_key": None,
    "safety_identifier": None,
    "user": "me",
    "usage": {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 9,
    },
}


def events_of(text: str) -> list[dict[str, Any]]:
    frames = [frame for frame in text.split("\n\n") if frame and not frame.startswith(":")]
    found = [json.loads(frame.split("\n")[1].removeprefix("data: ")) for frame in frames]
    assert [frame.split("\n")[0] for frame in frames] == [
        f"event: {each['type']}" for each in found
    ]
    assert [each["sequence_number"] for each in found] == list(range(len(found)))
    return found


def test_an_answer_in_full(serve):
    script = Script(["hm</think>", "Hello"], thinks=True)
    fields = {
        "input": "hi",
        "model": "any",
        "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "time"}],
        "temperature": 0.5,
        "max_output_tokens": 100,
        "reasoning": {"effort": "low", "summary": "auto"},
        "metadata": {"a": "b"},
        "user": "me",
    }
    reply = serve(ScriptedEngine(script)).post(URL, json=fields)
    answer = reply.json()
    assert answer.pop("id").startswith("resp_")
    assert answer.pop("created_at") <= answer.pop("completed_at")
    report = answer.pop("mtplx")
    assert report["request_id"] == reply.headers["x-request-id"]
    assert (report["requested_model"], report["effort"]) == ("any", "low")
    thoughts, message = answer.pop("output")
    assert thoughts.pop("id").startswith("rs_")
    assert message.pop("id").startswith("msg_")
    assert thoughts == {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
        "encrypted_content": None,
        "status": "completed",
    }
    part = {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
    assert message == {
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }
    assert answer == REPEATED
    assert set(answer) | {"id", "created_at", "completed_at", "mtplx", "output"} == set(
        Response.model_fields
    )


def test_a_schema_is_repeated_with_all_its_keys(serve):
    form = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}
    answer = serve().post(URL, json={"input": "hi", "text": {"format": form}}).json()
    assert answer["text"]["format"] == {**form, "description": None, "strict": False}


def test_tools_are_repeated_but_for_those_that_were_left_out(serve):
    patch = {
        "type": "custom",
        "name": "patch",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"},
    }
    agents = {"type": "namespace", "name": "agents", "tools": [TIME]}
    searches = {**agents, "tools": [TIME, {"type": "web_search"}]}
    given = [TIME, patch, searches, {"type": "web_search"}, {"type": "mcp", "name": "function"}]
    client = serve(skip_hosted_tools=True)
    answer = client.post(URL, json={"input": "hi", "tools": given}).json()
    whole = {**TIME, "description": None, "strict": False}
    assert answer["tools"] == [whole, patch, {**agents, "description": "", "tools": [whole]}]


@pytest.mark.parametrize(
    ("scenario", "statuses"),
    [
        ("length", [("message", "incomplete")]),
        ("only reasoning", [("reasoning", "incomplete")]),
        ("empty", [("message", "completed")]),
        ("a call that is cut", [("message", "completed"), ("function_call", "incomplete")]),
        (
            "thoughts, text, two calls",
            [
                ("reasoning", "completed"),
                ("message", "completed"),
                ("function_call", "completed"),
                ("function_call", "completed"),
            ],
        ),
    ],
)
def test_what_was_cut_is_incomplete_whole_and_streamed(serve, scenario, statuses):
    client = serve(ScriptedEngine(SCENARIOS[scenario]))
    body = {"input": "hi", "tools": [TIME]}
    whole = client.post(URL, json=body).json()
    streamed = events_of(client.post(URL, json=body | {"stream": True}).text)[-1]
    for response in (whole, streamed["response"]):
        assert [(each["type"], each["status"]) for each in response["output"]] == statuses
        assert response["status"] in streamed["type"]
        cut = response["status"] == "incomplete"
        assert (response["completed_at"] is None) == cut
        why = {"reason": "max_output_tokens"} if cut else None
        assert response["incomplete_details"] == why


def test_a_stream_keeps_the_order_in_which_things_were_said(serve):
    client = serve(ScriptedEngine(SCENARIOS["reasoning twice"]))
    events = events_of(client.post(URL, json={"input": "hi", "stream": True}).text)
    output = events[-1]["response"]["output"]
    assert [(each["type"], each["content"][0]["text"]) for each in output] == [
        ("reasoning", "a"),
        ("message", "b"),
        ("reasoning", "c"),
        ("message", "d"),
    ]


def test_thoughts_are_sealed_only_when_asked_for(serve):
    client = serve(ScriptedEngine(SCENARIOS["reasoning"]))
    body = {"input": "hi", "include": ["reasoning.encrypted_content"]}
    whole = client.post(URL, json=body).json()
    events = events_of(client.post(URL, json=body | {"stream": True}).text)
    added, done = (each for each in events if each.get("item", {}).get("type") == "reasoning")
    assert added["item"]["encrypted_content"] is None
    assert done["item"]["encrypted_content"].startswith("mtplx:")
    assert whole["output"][0]["encrypted_content"] == done["item"]["encrypted_content"]


def test_scores_come_only_when_asked_for(serve):
    client = serve(ScriptedEngine(SCENARIOS["scores"]))
    (message,) = client.post(URL, json={"input": "hi"}).json()["output"]
    assert message["content"][0]["logprobs"] == []
    asked = {"input": "hi", "include": ["message.output_text.logprobs"], "top_logprobs": 2}
    (message,) = client.post(URL, json=asked).json()["output"]
    assert [each["logprob"] for each in message["content"][0]["logprobs"]] == [-0.25, -9999.0]


def test_a_failure_inside_a_stream_ends_it_with_what_was_complete(serve):
    failure = EngineFailed("The engine has stopped: out of memory.")
    script = Script(["hm</think>", "begun", failure], thinks=True)
    client = serve(ScriptedEngine(script))
    *_, error, last = events_of(client.post(URL, json={"input": "hi", "stream": True}).text)
    assert (error["type"], error["code"]) == ("error", "engine_failed")
    response = last["response"]
    assert (last["type"], response["status"]) == ("response.failed", "failed")
    assert response["error"] == {"code": "engine_failed", "message": str(failure)}
    assert [each["type"] for each in response["output"]] == ["reasoning"]
    assert response["usage"] is None


@pytest.mark.parametrize(
    ("failure", "status", "code", "param"),
    [
        (ContextOverflow(5000, 4096), 400, "context_length_exceeded", "input"),
        (Overloaded("The queue is full.", retry_after_s=2), 503, "server_overloaded", None),
    ],
)
def test_a_failure_before_a_stream_is_a_status(serve, failure, status, code, param):
    client = serve(ScriptedEngine(Script(rejection=failure)))
    for path in (URL, f"{URL}/input_tokens"):
        reply = client.post(path, json={"input": "hi", "stream": True})
        assert reply.status_code == status
        told = reply.json()["error"]
        assert (told["code"], told["param"]) == (code, param)


def test_a_silence_is_filled_with_comments(serve):
    release = threading.Event()
    engine = ScriptedEngine(Script(["a", Hold(release), "b"]))
    client = serve(engine, keepalive_s=0.02)
    text = ""
    with client.stream("POST", URL, json={"input": "hi", "stream": True}) as reply:
        for piece in reply.iter_text():
            text += piece
            if ": keep-alive" in text:
                release.set()
    assert events_of(text)[-1]["type"] == "response.completed"


def test_counting(serve):
    engine = ScriptedEngine(Script(prompt_tokens=42))
    reply = serve(engine).post(f"{URL}/input_tokens", json={"input": "hi", "tools": [TIME]})
    assert reply.json() == {"object": "response.input_tokens", "input_tokens": 42}
    assert engine.requests == []


def test_a_websocket_is_refused_in_the_way_that_makes_clients_go_on(serve):
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    reply = serve().get(URL, headers=headers)
    assert reply.status_code == 426
    assert reply.json()["error"]["code"] == "websocket_not_supported"


@pytest.mark.parametrize(("method", "path"), [("GET", "/resp_1"), ("POST", "/compact")])
def test_what_needs_a_store_is_not_there(serve, method, path):
    reply = serve().request(method, URL + path)
    assert reply.status_code == 404
    assert reply.json()["error"]["code"] == "not_found"
