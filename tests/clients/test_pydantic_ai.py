"""Pydantic AI: agents with tools and with structured output."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

import openai
import pytest
from pydantic import BaseModel, Field
from pydantic_ai import (
    Agent,
    ModelSettings,
    NativeOutput,
    PromptedOutput,
    RunContext,
    ToolOutput,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

Answer = TypeVar("Answer")
City = Literal["Rome", "Oslo"]
QUESTION = "How is the weather in Rome and Oslo?"


class Forecast(BaseModel):
    city: City
    days: int = Field(ge=1, le=7)


def talk(url: str, say: Callable[[OpenAIChatModel], Awaitable[Answer]]) -> Answer:
    """Let a conversation with a model run to its end."""

    async def run() -> Answer:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            return await say(OpenAIChatModel("any", provider=OpenAIProvider(openai_client=client)))

    return asyncio.run(run())


def get_weather(city: City) -> str:
    """Tell the weather."""
    return f"warm in {city}"


def test_text_whole_and_streamed(server: str) -> None:
    async def say(model: OpenAIChatModel) -> tuple[str, str]:
        agent = Agent(model, model_settings={"temperature": 0, "max_tokens": 8})
        whole = await agent.run("Hi")
        async with agent.run_stream("Hi") as stream:
            return whole.output, await stream.get_output()

    whole, streamed = talk(server, say)
    assert streamed == whole


@pytest.mark.parametrize("kind", [ToolOutput, NativeOutput])
def test_structured_output(server: str, kind: Any) -> None:
    agent: Agent[None, Forecast] = Agent(
        output_type=kind(Forecast), model_settings={"parallel_tool_calls": False}
    )
    run = talk(server, lambda model: agent.run("How will the weather be?", model=model))
    assert isinstance(run.output, Forecast)


def test_structured_output_by_asking_for_json(scripted: str) -> None:
    agent: Agent[None, Forecast] = Agent(output_type=PromptedOutput(Forecast))
    run = talk(scripted, lambda model: agent.run("How will the weather be?", model=model))
    assert run.output == Forecast(city="Rome", days=3)


def test_an_agent_that_must_call_a_tool_and_then_answer_in_form(server: str) -> None:
    def settings(context: RunContext[None]) -> ModelSettings:
        name = "get_weather" if context.run_step == 1 else "final_result"
        return ModelSettings(tool_choice=[name], parallel_tool_calls=False)

    agent: Agent[None, Forecast] = Agent(
        tools=[get_weather], output_type=Forecast, model_settings=settings
    )
    run = talk(server, lambda model: agent.run(QUESTION, model=model))
    assert isinstance(run.output, Forecast)
    assert (run.usage.requests, run.usage.tool_calls) == (2, 1)


def test_an_agent_with_a_tool(scripted: str) -> None:
    agent = Agent(tools=[get_weather])
    run = talk(scripted, lambda model: agent.run(QUESTION, model=model))
    assert run.output == "It is warm in Rome and warm in Oslo."
    assert run.usage.tool_calls == 2


def test_an_agent_with_a_tool_in_streams(scripted: str) -> None:
    async def say(model: OpenAIChatModel) -> str:
        async with Agent(tools=[get_weather]).run_stream(QUESTION, model=model) as stream:
            return await stream.get_output()

    assert talk(scripted, say) == "It is warm in Rome and warm in Oslo."
