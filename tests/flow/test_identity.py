"""Over HTTP: a seeded answer is the same with MTP off and at every depth, streamed or not."""

import json
from typing import Any

import httpx
import pytest

from mtplx_client.streams import accumulate
from mtplx_client.wire.chat import ChatCompletionChunk


def ask(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 60} | fields


def answer(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    response = client.post("/v1/chat/completions", json=ask(**fields))
    assert response.status_code == 200, response.text
    reply: dict[str, Any] = response.json()
    return reply


def what_was_said(reply: dict[str, Any]) -> tuple[Any, ...]:
    choice = reply["choices"][0]
    # What the session cache held is the one thing that may differ.
    usage = {name: count for name, count in reply["usage"].items() if "details" not in name}
    message = choice["message"]
    return message["content"], message.get("reasoning_content"), choice["finish_reason"], str(usage)


@pytest.mark.parametrize("temperature", [0, 0.7, 1.5])
def test_seeded_answers_do_not_depend_on_mtp(client: httpx.Client, temperature: float) -> None:
    fields = {"temperature": temperature, "seed": 42}
    plain = answer(client, generation_mode="ar", **fields)
    assert plain["mtplx"]["mode"] == "plain"
    accepted = 0
    for depth in (1, 2, 3):
        drafted = answer(client, depth=depth, **fields)
        assert drafted["mtplx"]["mode"] == "mtp"
        assert drafted["mtplx"]["depth"] == depth
        assert what_was_said(drafted) == what_was_said(plain)
        accepted += sum(drafted["mtplx"]["accepted"])
    assert accepted > 0, "no draft was ever accepted, so this proves nothing"


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("stop", [None, ["e"], ["\n", "ab"]])
def test_streamed_equals_unstreamed(client: httpx.Client, depth: int, stop: list[str]) -> None:
    fields = {"temperature": 1, "seed": 9, "depth": depth, "stop": stop}
    whole = answer(client, **fields)
    body = ask(**fields, stream=True, stream_options={"include_usage": True})
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        lines = [line for line in response.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    streamed = accumulate(ChatCompletionChunk.model_validate(chunk) for chunk in chunks)
    assert what_was_said(streamed.model_dump(exclude_none=True)) == what_was_said(
        {**whole, "usage": {k: v for k, v in whole["usage"].items() if v is not None}}
    )


def test_another_seed_is_another_answer(client: httpx.Client) -> None:
    said = {what_was_said(answer(client, temperature=1.0, seed=seed))[0:2] for seed in range(3)}
    assert len(said) == 3


def test_errors_of_the_model_are_the_requests(client: httpx.Client) -> None:
    too_long = client.post(
        "/v1/chat/completions", json=ask() | {"messages": [{"role": "user", "content": "x" * 5000}]}
    )
    assert too_long.status_code == 400
    assert too_long.json()["error"]["code"] == "context_length_exceeded"
    too_deep = client.post("/v1/chat/completions", json=ask(depth=9))
    assert too_deep.status_code == 400
    assert too_deep.json()["error"]["param"] == "depth"
    assert answer(client)["usage"]["completion_tokens"] > 0
