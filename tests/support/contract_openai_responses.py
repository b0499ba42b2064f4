"""OpenAI's Responses, as the contract suite talks to them."""

import json
from itertools import groupby
from typing import Any

from contract import Protocol, Said

TIME = {"type": "function", "name": "time", "parameters": {"type": "object"}}
PREFIXES = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_"}
ENDS = ("response.completed", "response.incomplete", "response.failed")


def _payloads(text: str) -> list[str]:
    """Payloads of events with a kind, which their data repeats, and numbers without a gap."""
    frames = text.split("\n\n")
    assert frames.pop() == ""
    payloads = []
    for at, frame in enumerate(frames):
        kind, data = frame.split("\n")
        payload = json.loads(data.removeprefix("data: "))
        assert kind == f"event: {payload['type']}"
        assert payload["sequence_number"] == at
        payloads.append(data.removeprefix("data: "))
    return payloads


def _join(payloads: list[str]) -> Any:
    """The last response, once its items have been seen to grow as they are told to."""
    created, in_progress, *events, last = map(json.loads, payloads)
    assert (created["type"], in_progress["type"]) == ("response.created", "response.in_progress")
    assert last["type"] in ENDS
    items = [list(each) for _, each in groupby(events, key=lambda event: event["output_index"])]
    assert [_grown(at, *each) for at, each in enumerate(items)] == last["response"]["output"]
    return _named(last["response"])


def _grown(at: int, added: Any, *steps: Any) -> Any:
    """The item that some events make, each of which must be about it."""
    *steps, done = steps
    assert (added["type"], done["type"]) == (
        "response.output_item.added",
        "response.output_item.done",
    )
    item = done["item"]
    assert added["item"]["status"] == "in_progress"
    assert all(step["item_id"] == item["id"] == added["item"]["id"] for step in steps)
    assert all(each["output_index"] == at for each in (added, *steps, done))
    deltas = [step for step in steps if step["type"].endswith(".delta")]
    text = "".join(step["delta"] for step in deltas)
    if "content" in item:
        (part,) = item["content"]
        first, *middle, whole, last = steps
        assert first["type"] == "response.content_part.added"
        assert first["part"]["text"] == ""
        assert middle == deltas
        assert whole["text"] == text == part["text"]
        assert (last["type"], last["part"]) == ("response.content_part.done", part)
        scores = [score for step in deltas for score in step.get("logprobs", ())]
        assert scores == part.get("logprobs", [])[: len(scores)]
    else:
        assert text == item["arguments"]
    return item


def _whole(text: str) -> Any:
    return _named(json.loads(text))


def _named(response: Any) -> Any:
    """An answer without ids, and its scores by themselves: several messages share them freely."""
    assert response.pop("id").startswith("resp_")
    for name in ("created_at", "completed_at"):
        response.pop(name)
    response["mtplx"].pop("request_id")
    scores = []
    for item in response["output"]:
        assert item.pop("id").startswith(PREFIXES[item["type"]])
        if item["type"] == "function_call":
            assert item.pop("call_id").startswith("call_")
        for part in item.get("content", ()):
            scores += part.pop("logprobs", ())
    return response, scores


def _said(answer: Any) -> Said:
    response, _ = answer
    output, usage = response["output"], response["usage"]
    calls = [item for item in output if item["type"] == "function_call"]
    whole = tuple(
        (call["name"], json.loads(call["arguments"]))
        for call in calls
        if call["status"] == "completed"
    )
    cut = response["status"] == "incomplete"
    return Said(
        _text(output, "message"),
        _text(output, "reasoning"),
        whole,
        usage["input_tokens"],
        usage["output_tokens"],
        usage["output_tokens_details"]["reasoning_tokens"],
        "length" if cut else "tool_calls" if whole else "stop",
        response["mtplx"]["stop_sequence"],
    )


def _text(output: Any, kind: str) -> str:
    parts = [part for item in output if item["type"] == kind for part in item["content"]]
    return "".join(part["text"] for part in parts)


def _failed(payloads: list[str]) -> str:
    *_, error, last = map(json.loads, payloads)
    assert error["type"] == "error"
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["message"] == error["message"]
    return str(error["message"])


RESPONSES = Protocol(
    path="/v1/responses",
    body={"input": "hi", "tools": [TIME]},
    stream={"stream": True},
    payloads=_payloads,
    join=_join,
    whole=_whole,
    said=_said,
    failed=_failed,
    scored={"include": ["message.output_text.logprobs"], "top_logprobs": 2},
)
