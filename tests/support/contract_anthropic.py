"""Anthropic's Messages, as the contract suite talks to it."""

import json
from typing import Any

from contract import Protocol, Said

TIME = {"name": "time", "input_schema": {"type": "object"}}
ENDS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}


def events(text: str) -> list[str]:
    """The data of server-sent events, each of which is named as its data says."""
    frames = text.split("\n\n")
    assert frames.pop() == ""
    payloads = []
    for frame in frames:
        event, data = frame.split("\n")
        payloads.append(data.removeprefix("data: "))
        assert event == f"event: {json.loads(payloads[-1])['type']}"
    return payloads


def join(payloads: list[str]) -> Any:
    """The whole reply that a stream says, see `whole`; checks the order of its events."""
    start, ping, *middle, change, stop = map(json.loads, payloads)
    assert start["type"] == "message_start"
    assert ping == {"type": "ping"}
    assert stop == {"type": "message_stop"}
    message = start["message"]
    assert message["content"] == []
    assert message["stop_reason"] is None
    assert change.pop("type") == "message_delta"
    prompt = message["usage"]["input_tokens"]
    assert prompt == change["usage"]["input_tokens"]
    message |= change.pop("delta") | change
    message["content"] = _blocks(middle)
    return whole(json.dumps(message))


def _blocks(happened: list[Any]) -> list[Any]:
    """Each has a beginning, changes and an end; they come one after the other."""
    blocks: list[Any] = []
    arguments = ""
    is_open = False
    for each in happened:
        match each:
            case {"type": "content_block_start", "index": index, "content_block": block}:
                assert (is_open, index) == (False, len(blocks))
                blocks.append(block)
                arguments, is_open = "", True
            case {"type": "content_block_delta", "index": index, "delta": delta}:
                assert (is_open, index) == (True, len(blocks) - 1)
                kind = delta.pop("type")
                arguments += delta.pop("partial_json", "")
                _grow(blocks[-1], kind, delta)
            case {"type": "content_block_stop", "index": index}:
                assert (is_open, index) == (True, len(blocks) - 1)
                if blocks[-1]["type"] == "tool_use":
                    assert blocks[-1]["input"] == {}
                    blocks[-1]["input"] = json.loads(arguments)
                is_open = False
            case {"type": "ping"}:
                assert not is_open
            case other:
                raise AssertionError(other)
    assert not is_open
    return [each for each in blocks if each.get("text") != "" and each.get("thinking") != ""]


def _grow(block: Any, kind: str, delta: dict[str, str]) -> None:
    for name, text in delta.items():
        assert kind == f"{name}_delta"
        block[name] += text


def whole(text: str) -> Any:
    """A whole reply without what differs between any two."""
    message = json.loads(text)
    assert message.pop("id").startswith("msg_")
    del message["mtplx"]["request_id"]
    ids = [block.pop("id") for block in message["content"] if block["type"] == "tool_use"]
    assert len(set(ids)) == len(ids)
    assert all(each.startswith("toolu_") for each in ids)
    return message


def _said(message: Any) -> Said:
    content, usage = message["content"], message["usage"]
    return Said(
        "".join(block["text"] for block in content if block["type"] == "text"),
        "".join(block["thinking"] for block in content if block["type"] == "thinking"),
        tuple((block["name"], block["input"]) for block in content if block["type"] == "tool_use"),
        usage["input_tokens"] + usage["cache_read_input_tokens"],
        usage["output_tokens"],
        usage["output_tokens_details"]["thinking_tokens"],
        ENDS[message["stop_reason"]],
        message["stop_sequence"],
    )


def _failed(payloads: list[str]) -> str:
    error = json.loads(payloads[-1])
    assert error["type"] == "error"
    return str(error["error"]["message"])


MESSAGES = Protocol(
    path="/v1/messages",
    body={
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 200,
        "tools": [TIME],
    },
    stream={"stream": True},
    payloads=events,
    join=join,
    whole=whole,
    said=_said,
    failed=_failed,
)
