"""LangChain's models for OpenAI."""

import asyncio
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel, Field, SecretStr

City = Literal["Rome", "Oslo"]
NO_KEY = SecretStr("none")


class Forecast(BaseModel):
    """How the weather is going to be."""

    city: City
    days: int = Field(ge=1, le=7)


@tool
def get_weather(city: City) -> str:
    """Tell the weather."""
    return f"warm in {city}"


def chat(url: str, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="any", base_url=url, api_key=NO_KEY, max_retries=0, **options)


def test_invoke_and_stream(server: str) -> None:
    model = chat(server, temperature=0, max_completion_tokens=8, stream_usage=True)
    whole = model.invoke([("system", "Be brief."), ("user", "Hi")])
    chunks = list(model.stream([("system", "Be brief."), ("user", "Hi")]))
    assert "".join(str(chunk.content) for chunk in chunks) == whole.content
    assert whole.usage_metadata is not None
    usage = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert [each["output_tokens"] for each in usage] == [whole.usage_metadata["output_tokens"]]


def test_batches_and_coroutines(server: str) -> None:
    model = chat(server, temperature=0, max_completion_tokens=4)
    once, again = model.batch(["Hi", "Hi"])

    async def talk() -> AIMessage:
        message = await model.ainvoke("Hi")
        await model.root_async_client.close()  # else it stays open, for all models
        return message

    assert once.content == again.content == asyncio.run(talk()).content


def test_completions(server: str) -> None:
    model = OpenAI(model="any", base_url=server, api_key=NO_KEY, temperature=0, max_tokens=4)
    assert "".join(model.stream("Once upon")) == model.invoke("Once upon")


@pytest.mark.parametrize("choice", ["required", "get_weather"])
def test_a_round_with_a_forced_call(server: str, choice: str) -> None:
    model = chat(server, max_completion_tokens=400)
    question = HumanMessage("How is the weather?")
    # Only strict schemas forbid further members, which random weights never stop to add.
    bound = model.bind_tools(
        [get_weather], tool_choice=choice, strict=True, parallel_tool_calls=False
    )
    said = bound.invoke([question])
    assert len(said.tool_calls) == 1
    assert said.invalid_tool_calls == []
    results = [get_weather.invoke(call) for call in said.tool_calls]
    assert isinstance(results[0], ToolMessage)
    bound = model.bind_tools([get_weather], tool_choice="none", max_completion_tokens=4)
    assert isinstance(bound.invoke([question, said, *results]), AIMessage)


def test_a_round_of_streams(scripted: str) -> None:
    model = chat(scripted).bind_tools([get_weather])
    messages: list[Any] = [HumanMessage("How is the weather?")]
    said = AIMessageChunk("")
    for chunk in model.stream(messages):
        said = said + chunk
    assert [call["args"]["city"] for call in said.tool_calls] == ["Rome", "Oslo"]
    messages += [said, *(get_weather.invoke(call) for call in said.tool_calls)]
    assert model.invoke(messages).content == "It is warm in Rome and warm in Oslo."


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(server: str, method: Any) -> None:
    model = chat(server).with_structured_output(Forecast, method=method, strict=True)
    assert isinstance(model.invoke("How will the weather be?"), Forecast)


# LangChain dumps chunks that hold a parsed answer as if they held none.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_structured_output_in_a_stream(server: str) -> None:
    model = chat(server).with_structured_output(Forecast, method="json_schema")
    assert isinstance(list(model.stream("How will the weather be?"))[-1], Forecast)


def test_structured_output_by_asking_for_json(scripted: str) -> None:
    model = chat(scripted).with_structured_output(Forecast, method="json_mode")
    assert model.invoke("Answer in JSON.") == Forecast(city="Rome", days=3)
