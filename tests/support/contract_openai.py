"""Chat Completions and Completions, as the contract suite talks to them."""

import json
from typing import Any

from contract import Protocol, Said, sse_payloads

from mtplx_client import ChatCompletion, ChatCompletionChunk, accumulate
from mtplx_client.wire.completions import Completion

TIME = {"type": "function", "function": {"name": "time", "parameters": {"type": "object"}}}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}


def _join_chat(payloads: list[str]) -> Any:
    assert payloads.pop() == "[DONE]"
    return _chat(accumulate(map(ChatCompletionChunk.model_validate_json, payloads)))


def _chat(answer: ChatCompletion) -> Any:
    found = answer.model_dump(exclude={"id": True, "created": True, "mtplx": {"request_id"}})
    for choice in found["choices"]:
        for call in choice["message"].get("tool_calls") or ():
            assert call.pop("id").startswith("call_")
            call.pop("index")
    return found


def _chat_said(answer: Any) -> Said:
    (choice,) = answer["choices"]
    message, usage = choice["message"], answer["usage"]
    calls = [each["function"] for each in message.get("tool_calls") or ()]
    return Said(
        message["content"] or "",
        message.get("reasoning_content") or "",
        tuple(
            (each["name"], value)
            for each in calls
            if (value := _value(each["arguments"])) is not None
        ),
        usage["prompt_tokens"],
        usage["completion_tokens"],
        usage["completion_tokens_details"]["reasoning_tokens"],
        choice["finish_reason"],
        answer["mtplx"]["stop_sequence"],
    )


def _value(arguments: str) -> Any:
    """Of a call that can be run; None of another."""
    try:
        return json.loads(arguments)
    except ValueError:
        return None


def _join_completion(payloads: list[str]) -> Any:
    assert payloads.pop() == "[DONE]"
    *chunks, last = map(Completion.model_validate_json, payloads)
    assert last.choices == []
    parts = [part for chunk in chunks for part in chunk.choices]
    indices = sorted({part.index for part in parts})
    choices = [[part for part in parts if part.index == at] for at in indices]
    reports = [chunk.mtplx for chunk in chunks if chunk.mtplx is not None]
    return list(map(_choice, choices)), last.usage, [_named(each) for each in reports]


def _completion(answer: Completion) -> Any:
    choices = [_choice([choice]) for choice in answer.choices]
    return choices, answer.usage, [_named(answer.mtplx)]


def _choice(parts: list[Any]) -> Any:
    scores = [part.logprobs for part in parts if part.logprobs is not None]
    lists = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    reasons = [part.finish_reason for part in parts if part.finish_reason]
    joined = [[entry for each in scores for entry in getattr(each, name)] for name in lists]
    return "".join(part.text for part in parts), reasons, joined


def _named(report: Any) -> Any:
    return report.model_dump(exclude={"request_id"})


def _completion_said(answer: Any) -> Said:
    ((text, (reason,), _),), usage, (report,) = answer
    details = usage.completion_tokens_details
    counts = usage.prompt_tokens, usage.completion_tokens, details.reasoning_tokens
    return Said(text, "", (), *counts, reason, report["stop_sequence"])


def _failed(payloads: list[str]) -> str:
    *_, error, end = payloads
    assert end == "[DONE]"
    return str(json.loads(error)["error"]["message"])


CHAT = Protocol(
    path="/v1/chat/completions",
    body={"messages": [{"role": "user", "content": "hi"}], "tools": [TIME]},
    stream=USAGE,
    payloads=sse_payloads,
    join=_join_chat,
    whole=lambda text: _chat(ChatCompletion.model_validate_json(text)),
    said=_chat_said,
    failed=_failed,
    scored={"logprobs": True, "top_logprobs": 2},
    several={"n": 3},
)
COMPLETIONS = Protocol(
    path="/v1/completions",
    body={"prompt": "hi", "max_tokens": 200},
    stream=USAGE,
    payloads=sse_payloads,
    join=_join_completion,
    whole=lambda text: _completion(Completion.model_validate_json(text)),
    said=_completion_said,
    failed=_failed,
    scored={"logprobs": 2},
    several={"n": 3},
    converses=False,
)
