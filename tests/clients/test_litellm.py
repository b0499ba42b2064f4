"""LiteLLM, with the server as an OpenAI-compatible one and as vLLM."""

import asyncio
from collections.abc import Iterator
from typing import Any, Literal

import litellm
import pytest
from pydantic import BaseModel, ConfigDict, Field

# What LiteLLM's own modules make pydantic say.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Items? .* using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_.*fields' attribute on the instance"),
]

HI = [{"role": "user", "content": "Hi"}]
ASK = [{"role": "user", "content": "How is the weather in Rome and Oslo?"}]


class GetWeather(BaseModel):
    model_config = ConfigDict(extra="forbid")
    city: Literal["Rome", "Oslo"]


class Forecast(BaseModel):
    city: Literal["Rome", "Oslo"]
    days: int = Field(ge=1, le=7)


TOOLS = [
    {
        "type": "function",
        "function": {"name": "get_weather", "parameters": GetWeather.model_json_schema()},
    }
]


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """LiteLLM takes the event loop of the thread, or else makes one that nobody closes."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(params=["openai", "hosted_vllm"])
def provider(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def ask(url: str, provider: str = "openai", **options: Any) -> Any:
    return litellm.completion(
        f"{provider}/any", api_base=url, api_key="none", num_retries=0, **options
    )


def test_completion_and_stream(server: str, provider: str) -> None:
    options: Any = {"messages": HI, "temperature": 0, "max_tokens": 8}
    whole = ask(server, provider, **options)
    streaming = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(ask(server, provider, **options, **streaming))
    rebuilt: Any = litellm.stream_chunk_builder(chunks, messages=HI)
    assert rebuilt.choices[0].message.content == whole.choices[0].message.content
    assert rebuilt.choices[0].finish_reason == whole.choices[0].finish_reason
    assert rebuilt.usage.completion_tokens == whole.usage.completion_tokens


def test_text_completion(server: str) -> None:
    answer: Any = litellm.text_completion(
        model="text-completion-openai/any", prompt="Once upon", max_tokens=4,
        api_base=server, api_key="none",
    )  # fmt: skip
    assert answer.usage.completion_tokens <= 4
    assert isinstance(answer.choices[0].text, str)


def test_coroutines(server: str) -> None:
    async def talk() -> list[str]:
        call: Any = {"model": "openai/any", "api_base": server, "api_key": "none", "messages": HI}
        call |= {"max_tokens": 8, "temperature": 0}
        whole: Any = await litellm.acompletion(**call)
        stream: Any = await litellm.acompletion(**call, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        await litellm.close_litellm_async_clients()
        return [whole.choices[0].message.content, "".join(pieces)]

    whole, streamed = asyncio.run(talk())
    assert streamed == whole


def test_a_round_with_a_forced_call(server: str) -> None:
    said = ask(
        server, messages=ASK, tools=TOOLS, tool_choice="required",
        parallel_tool_calls=False,
    ).choices[0].message  # fmt: skip
    [call] = said.tool_calls
    GetWeather.model_validate_json(call.function.arguments)
    result = {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}
    answer = ask(
        server, messages=[*ASK, said, result], tools=TOOLS, tool_choice="none",
        max_tokens=4,
    )  # fmt: skip
    assert not answer.choices[0].message.tool_calls


def test_a_round_of_streams(scripted: str, provider: str) -> None:
    def stream(messages: list[Any]) -> Any:
        chunks = list(ask(scripted, provider, messages=messages, tools=TOOLS, stream=True))
        rebuilt: Any = litellm.stream_chunk_builder(chunks, messages=messages)
        return rebuilt.choices[0].message

    said = stream(ASK)
    cities = [
        GetWeather.model_validate_json(call.function.arguments).city for call in said.tool_calls
    ]
    assert cities == ["Rome", "Oslo"]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": f"warm in {city}"}
        for call, city in zip(said.tool_calls, cities, strict=True)
    ]
    assert stream([*ASK, said, *results]).content == "It is warm in Rome and warm in Oslo."


def test_a_structured_answer(server: str, provider: str) -> None:
    answer = ask(server, provider, messages=ASK, response_format=Forecast)
    Forecast.model_validate_json(answer.choices[0].message.content)


def test_errors_arrive_as_the_classes_that_people_catch(scripted: str) -> None:
    with pytest.raises(litellm.BadRequestError):
        ask(scripted, messages=HI, temperature=9)
