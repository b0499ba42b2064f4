"""The official SDK: whole answers, streams, structured answers, completions; sync and async."""

import asyncio
from collections.abc import Iterator
from typing import Any, Literal

import openai
import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion
from pydantic import BaseModel, Field

HI: Any = [{"role": "user", "content": "Hi"}]
CHAT: Any = {"model": "any", "messages": HI, "max_tokens": 12, "temperature": 0}
TEXT: Any = {"model": "any", "prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}


class Forecast(BaseModel):
    city: Literal["Rome", "Oslo"]
    days: int = Field(ge=1, le=7)
    note: str = Field(max_length=6)


@pytest.fixture
def client(server: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server, api_key="none", max_retries=0) as client:
        yield client


def content(answer: ChatCompletion) -> str | None:
    return answer.choices[0].message.content


def test_a_stream_says_what_the_whole_answer_says(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**CHAT)
    options: Any = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client.chat.completions.create(**CHAT, **options))
    deltas = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(deltas) == content(whole)
    assert chunks[-1].usage == whole.usage
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason


def test_the_streaming_helper(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(**CHAT, logprobs=True) as stream:
        kinds = {event.type for event in stream}
        answer = stream.current_completion_snapshot
    assert {"chunk", "content.delta", "content.done", "logprobs.content.delta"} <= kinds
    assert content(answer) == content(client.chat.completions.create(**CHAT))


def test_several_answers_with_log_probabilities(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="any", messages=HI, max_tokens=6, n=3, logprobs=True, top_logprobs=2
    )
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert answer.usage is not None
    scored = [choice.logprobs.content for choice in answer.choices if choice.logprobs]
    assert sum(len(each or ()) for each in scored) == answer.usage.completion_tokens
    for token in scored[0] or ():
        assert token.logprob <= 0
        assert len(token.top_logprobs) == 2
        assert token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob


def test_a_structured_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.parse(model="any", messages=HI, response_format=Forecast)
    assert isinstance(answer.choices[0].message.parsed, Forecast)
    assert answer.choices[0].finish_reason == "stop"


def test_a_structured_answer_in_a_stream(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model="any", messages=HI, response_format=Forecast
    ) as stream:
        done = [event for event in stream if event.type == "content.done"]
    assert isinstance(done[0].parsed, Forecast)


def test_the_asynchronous_client(server: str) -> None:
    async def talk() -> tuple[ChatCompletion, str, Forecast | None]:
        async with openai.AsyncOpenAI(base_url=server, api_key="none") as client:
            chat = client.chat.completions
            whole, stream, parsed = await asyncio.gather(
                chat.create(**CHAT),
                chat.create(**CHAT, stream=True),
                chat.parse(model="any", messages=HI, response_format=Forecast),
            )
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            return whole, "".join(pieces), parsed.choices[0].message.parsed

    whole, streamed, parsed = asyncio.run(talk())
    assert streamed == content(whole)
    assert isinstance(parsed, Forecast)


def test_completions(client: openai.OpenAI) -> None:
    whole = client.completions.create(**TEXT)
    assert whole.choices[0].text
    chunks = list(client.completions.create(**TEXT, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text


def test_completions_of_several_prompts_with_scores(client: openai.OpenAI) -> None:
    prompts = [[65, 66, 67], [68, 69]]
    answer: Completion = client.completions.create(
        model="any", prompt=prompts, n=2, max_tokens=2, echo=True, logprobs=1
    )
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    for choice, prompt in zip(answer.choices, [prompts[0]] * 2 + [prompts[1]] * 2, strict=True):
        assert choice.logprobs is not None
        scores = choice.logprobs.token_logprobs
        assert scores is not None
        assert scores[0] is None
        assert len(scores) in (len(prompt) + 1, len(prompt) + 2)
