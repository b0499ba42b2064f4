"""Instructor, in each of its modes for OpenAI."""

from collections.abc import Iterator
from typing import Literal

import instructor
import openai
import pytest
from pydantic import BaseModel, ConfigDict, Field

ASK = [{"role": "user", "content": "How will the weather be?"}]


class Forecast(BaseModel):
    model_config = ConfigDict(extra="forbid")
    city: Literal["Rome", "Oslo"]
    days: int = Field(ge=1, le=7)


@pytest.fixture
def sdk(server: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server, api_key="none", max_retries=0) as client:
        yield client


@pytest.mark.filterwarnings("ignore:Mode.TOOLS_STRICT is deprecated:DeprecationWarning")
@pytest.mark.parametrize("mode", ["TOOLS", "TOOLS_STRICT", "JSON_SCHEMA"])
def test_modes_that_a_grammar_keeps(sdk: openai.OpenAI, mode: str) -> None:
    client = instructor.from_openai(sdk, mode=instructor.Mode[mode])
    answer = client.chat.completions.create(
        model="any", messages=ASK, response_model=Forecast, max_retries=0
    )
    assert isinstance(answer, Forecast)


def test_json_as_the_prompt_asks_for_it(scripted: str) -> None:
    with openai.OpenAI(base_url=scripted, api_key="none", max_retries=0) as sdk:
        client = instructor.from_openai(sdk, mode=instructor.Mode.JSON)
        answer = client.chat.completions.create(
            model="any", messages=ASK, response_model=Forecast, max_retries=0
        )
    assert isinstance(answer, Forecast)
    assert (answer.city, answer.days) == ("Rome", 3)


def test_a_stream_of_partial_answers(sdk: openai.OpenAI) -> None:
    client = instructor.from_openai(sdk, mode=instructor.Mode.TOOLS)
    stream = client.chat.completions.create_partial(
        model="any", messages=ASK, response_model=Forecast, max_retries=0
    )
    last = list(stream)[-1]
    assert Forecast.model_validate(last.model_dump())
