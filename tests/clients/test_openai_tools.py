"""The official SDK: calls of functions, and rounds in which their results are sent back."""

import json
from collections.abc import Iterator
from typing import Any, Literal

import openai
import pytest
from openai.types.chat import ParsedFunctionToolCall
from pydantic import BaseModel, ConfigDict, Field

ASK: Any = [{"role": "user", "content": "How is the weather in Rome and Oslo?"}]


class GetWeather(BaseModel):
    # Where a schema allows further members, random weights never stop to add some.
    model_config = ConfigDict(extra="forbid")
    city: Literal["Rome", "Oslo"]


class Wait(BaseModel):
    days: int = Field(ge=1, le=7)


TOOLS = [openai.pydantic_function_tool(each) for each in (GetWeather, Wait)]
LOOSE: Any = [
    {
        "type": "function",
        "function": {"name": "get_weather", "parameters": GetWeather.model_json_schema()},
    }
]


@pytest.fixture
def client(server: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def script(scripted: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=scripted, api_key="none", max_retries=0) as client:
        yield client


def check(calls: list[ParsedFunctionToolCall] | None) -> None:
    assert calls
    for call in calls:
        arguments = call.function.parsed_arguments
        assert isinstance(arguments, {"GetWeather": GetWeather, "Wait": Wait}[call.function.name])


def test_a_required_call_is_parsed(client: openai.OpenAI) -> None:
    answer = client.chat.completions.parse(
        model="any", messages=ASK, tools=TOOLS, tool_choice="required", parallel_tool_calls=False
    )
    assert answer.choices[0].finish_reason == "tool_calls"
    check(answer.choices[0].message.tool_calls)


def test_a_call_in_a_stream_is_parsed(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model="any", messages=ASK, tools=TOOLS, tool_choice="required", parallel_tool_calls=False
    ) as stream:
        events = list(stream)
        answer = stream.get_final_completion()
    done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    pieces = [event for event in events if event.type == "tool_calls.function.arguments.delta"]
    assert len(done) == 1
    assert "".join(event.arguments_delta for event in pieces) == done[0].arguments
    check(answer.choices[0].message.tool_calls)


@pytest.mark.parametrize("name", ["GetWeather", "Wait"])
def test_a_function_by_name(client: openai.OpenAI, name: str) -> None:
    answer = client.chat.completions.parse(
        model="any",
        messages=ASK,
        tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": name}},
    )
    calls = answer.choices[0].message.tool_calls
    assert [call.function.name for call in calls or ()] == [name]
    check(calls)


def test_several_answers_each_with_a_call(client: openai.OpenAI) -> None:
    answer = client.chat.completions.parse(
        model="any", messages=ASK, tools=TOOLS, tool_choice="required", n=2,
        parallel_tool_calls=False, logprobs=True,
    )  # fmt: skip
    for choice in answer.choices:
        check(choice.message.tool_calls)
        assert choice.logprobs is not None
        assert choice.logprobs.content


def test_a_round_with_a_forced_call(client: openai.OpenAI) -> None:
    first = client.chat.completions.create(
        model="any", messages=ASK, tools=LOOSE, tool_choice="required", parallel_tool_calls=False
    )
    message = first.choices[0].message
    call = (message.tool_calls or [])[0]
    assert call.type == "function"
    GetWeather.model_validate_json(call.function.arguments)
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}
    second = client.chat.completions.create(
        model="any", messages=[*ASK, message, result], tools=LOOSE, tool_choice="none",
        max_tokens=8,
    )  # fmt: skip
    assert second.choices[0].message.tool_calls is None
    assert second.usage is not None
    assert first.usage is not None
    assert second.usage.prompt_tokens > first.usage.prompt_tokens


def test_a_round_with_two_calls_at_once(script: openai.OpenAI) -> None:
    message = script.chat.completions.create(
        model="any", messages=ASK, tools=LOOSE
    ).choices[0].message  # fmt: skip
    assert len({call.id for call in message.tool_calls or ()}) == 2
    assert answer_to(script, message) == "It is warm in Rome and warm in Oslo."


def test_a_round_of_streams(script: openai.OpenAI) -> None:
    with script.chat.completions.stream(model="any", messages=ASK, tools=LOOSE) as stream:
        message = stream.get_final_completion().choices[0].message
    assert answer_to(script, message) == "It is warm in Rome and warm in Oslo."


def answer_to(client: openai.OpenAI, message: Any) -> str:
    """Run the calls of a message, send the results back in a stream, and return what comes."""
    results: Any = [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": f"warm in {json.loads(call.function.arguments)['city']}",
        }
        for call in message.tool_calls
    ]
    # As people do it who keep the conversation themselves: plain data, with every field.
    said = message.model_dump()
    with client.chat.completions.stream(
        model="any", messages=[*ASK, said, *results], tools=LOOSE
    ) as stream:
        return stream.get_final_completion().choices[0].message.content or ""
