"""Ollama's two ways to generate, as the contract suite talks to them."""

import json
from typing import Any

from contract import Protocol, Said
from contract_openai import TIME

# Python's `str.splitlines`, with which some clients read lines, breaks at these, too.
_OTHER_LINE_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def _payloads(text: str) -> list[str]:
    assert text.endswith("\n")
    assert not any(each in text for each in _OTHER_LINE_ENDS)
    return text.split("\n")[:-1]


def _join(payloads: list[str]) -> Any:
    *lines, last = map(json.loads, payloads)
    assert last["done"] is True
    assert all(line["done"] is False and not _LAST & set(line) for line in lines)
    said = _Joined()
    for line in (*lines, last):
        said.add(line)
    return said.onto(last)


_LAST = {"done_reason", "total_duration", "eval_count", "mtplx"}


class _Joined:
    """What some lines say together."""

    def __init__(self) -> None:
        self.text = ""
        self.thoughts = ""
        self.calls: list[Any] = []
        self.scores: list[Any] = []

    def add(self, line: dict[str, Any]) -> None:
        part = line.get("message", line)
        self.text += part["content"] if "message" in line else part["response"]
        self.thoughts += part.get("thinking", "")
        self.calls += part.get("tool_calls", [])
        self.scores += line.get("logprobs", [])

    def onto(self, last: dict[str, Any]) -> Any:
        """The whole reply that ends as the last line does."""
        said: dict[str, Any] = {"thinking": self.thoughts} if self.thoughts else {}
        if "message" in last:
            if self.calls:
                said["tool_calls"] = self.calls
            last["message"] |= {"content": self.text, **said}
        else:
            last |= {"response": self.text, **said}
        if self.scores:
            last["logprobs"] = self.scores
        return _without_names(last)


def _without_names(answer: dict[str, Any]) -> Any:
    del answer["created_at"]
    del answer["mtplx"]["request_id"]
    for call in answer.get("message", {}).get("tool_calls", ()):
        assert call.pop("id").startswith("call_")
    return answer


def _said(answer: Any) -> Said:
    part = answer.get("message", answer)
    calls = [each["function"] for each in part.get("tool_calls", ())]
    assert [each["index"] for each in calls] == list(range(len(calls)))
    end = answer["done_reason"]
    return Said(
        part["content"] if "message" in answer else part["response"],
        part.get("thinking", ""),
        tuple((each["name"], each["arguments"]) for each in calls),
        answer["prompt_eval_count"],
        answer["eval_count"],
        None,
        "tool_calls" if calls and end == "stop" else end,
        answer["mtplx"]["stop_sequence"],
    )


def _failed(payloads: list[str]) -> str:
    last = json.loads(payloads[-1])
    assert set(last) == {"error"}
    return str(last["error"])


def _protocol(path: str, body: dict[str, Any], *, converses: bool) -> Protocol:
    return Protocol(
        path=path,
        body=body | {"stream": False},
        stream={"stream": True},
        payloads=_payloads,
        join=_join,
        whole=lambda text: _without_names(json.loads(text)),
        said=_said,
        failed=_failed,
        content_type="application/x-ndjson",
        scored={"logprobs": True, "top_logprobs": 2},
        converses=converses,
    )


OLLAMA_CHAT = _protocol(
    "/api/chat",
    {"messages": [{"role": "user", "content": "hi"}], "tools": [TIME]},
    converses=True,
)
# Raw, as the suite knows answers with thoughts and calls, and answers with neither.
OLLAMA_GENERATE = _protocol("/api/generate", {"prompt": "hi", "raw": True}, converses=False)
