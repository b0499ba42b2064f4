"""The official Anthropic client, as people use it."""

import asyncio
import json

import anthropic
import pydantic
import pytest
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_create_params as beta_params

from mtplx_engine.errors import ContextOverflow
from mtplx_engine.testing import Script, ScriptedEngine
from mtplx_server.protocols.anthropic_messages.fields import TABLE

HI = [{"role": "user", "content": "hi"}]
ASK = {"model": "any", "max_tokens": 100, "messages": HI}
TIME = {"name": "time", "input_schema": {"type": "object"}}
CALL = '<tool_call>{"name": "time", "arguments": {"zone": "UTC"}}</tool_call>'
THOUGHTFUL = Script(["hm</think>", "Hello", " 🙂"], thinks=True)
CALLING = Script(["hm</think>", "Let me see.", *CALL], thinks=True)


@pytest.fixture
def sdk(serve):
    clients = []

    def start(engine=None):
        url = str(serve(engine).base_url)
        clients.append(anthropic.Anthropic(base_url=url, api_key="none", max_retries=0))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def test_a_whole_answer(sdk):
    answer = sdk(ScriptedEngine(THOUGHTFUL)).messages.create(**ASK)
    thinking, text = answer.content
    assert (thinking.type, thinking.thinking, text.text) == ("thinking", "hm", "Hello 🙂")
    assert answer.stop_reason == "end_turn"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 3)
    assert answer.usage.output_tokens_details.thinking_tokens == 1
    assert answer.model == "org/scripted"
    assert answer._request_id.startswith("req_")


@pytest.mark.parametrize("script", [THOUGHTFUL, CALLING, Script([])])
def test_the_streaming_helper_makes_the_whole_answer(sdk, script):
    client = sdk(ScriptedEngine(script))
    whole = client.messages.create(**ASK, tools=[TIME])
    with client.messages.stream(**ASK, tools=[TIME]) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()
    assert kinds[-1] == "message_stop"
    for answer in (whole, streamed):
        for block in answer.content:
            if block.type == "tool_use":
                assert block.input == {"zone": "UTC"}
    named = {"id", "content", "mtplx"}
    assert streamed.model_dump(exclude=named) == whole.model_dump(exclude=named)
    said = [each.model_dump(exclude={"id"}) for each in whole.content]
    assert [each.model_dump(exclude={"id"}) for each in streamed.content] == said


def test_the_texts_of_a_stream(sdk):
    with sdk(ScriptedEngine(THOUGHTFUL)).messages.stream(**ASK) as stream:
        assert "".join(stream.text_stream) == "Hello 🙂"


def test_a_tool_round(sdk):
    scripts = iter([CALLING, Script(["It is noon."])])
    engine = ScriptedEngine(lambda _: next(scripts))
    client = sdk(engine)
    first = client.messages.create(**ASK, tools=[TIME])
    assert first.stop_reason == "tool_use"
    result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "12:00"}
    turns = [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = client.messages.create(**ASK | {"messages": [*HI, *turns]}, tools=[TIME])
    assert second.content[0].text == "It is noon."
    assert second.mtplx["ignored_fields"] == []
    _, called, told = engine.requests[1].prompt.messages
    assert (called.reasoning, called.text) == ("hm", "Let me see.")
    assert json.loads(called.calls[0].arguments) == {"zone": "UTC"}
    assert (told.role, told.text) == ("tool", "12:00")


def test_the_tool_runner_goes_on_without_threads(sdk):
    @anthropic.beta_tool
    def time(zone: str) -> str:
        """Tells the time.

        Args:
            zone: Where.
        """
        return f"noon in {zone}"

    scripts = iter([CALLING, Script(["Noon."])])
    engine = ScriptedEngine(lambda _: next(scripts))
    runner = sdk(engine).beta.messages.tool_runner(**ASK, tools=[time])
    assert runner.until_done().content[0].text == "Noon."
    assert engine.requests[1].prompt.messages[-1].text == "noon in UTC"


def test_the_count_of_a_prompt(sdk):
    counted = sdk(ScriptedEngine(Script(prompt_tokens=9))).messages.count_tokens(
        model="any", messages=HI, tools=[TIME], thinking={"type": "adaptive"}
    )
    assert counted.input_tokens == 9


class Person(pydantic.BaseModel):
    name: str
    age: int


def test_an_answer_that_is_parsed(sdk):
    engine = ScriptedEngine(Script(['{"name": "Ada", "age": 36}']))
    answer = sdk(engine).messages.parse(**ASK, output_format=Person)
    assert answer.parsed_output == Person(name="Ada", age=36)
    assert engine.requests[0].grammar.where == "output_config.format.schema"


def test_the_asynchronous_client(serve):
    url = str(serve(ScriptedEngine(THOUGHTFUL)).base_url)

    async def talk():
        async with anthropic.AsyncAnthropic(base_url=url, api_key="none") as client:
            whole, stream = await asyncio.gather(
                client.messages.create(**ASK), client.messages.create(**ASK, stream=True)
            )
            kinds = [event.type async for event in stream]
            return whole.content[-1].text, kinds[0]

    assert asyncio.run(talk()) == ("Hello 🙂", "message_start")


def test_models(sdk):
    client = sdk()
    (model,) = client.models.list()
    assert (model.id, model.max_input_tokens) == ("org/scripted", 4096)
    assert client.models.retrieve("org/scripted").display_name == "org/scripted"
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.models.retrieve("no/such")
    assert caught.value.body["error"]["type"] == "not_found_error"


def test_errors_arrive_as_the_classes_that_people_catch(sdk):
    client = sdk(ScriptedEngine(Script(rejection=ContextOverflow(5000, 4096))))
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(**ASK)
    assert caught.value.body["error"] == {
        "type": "invalid_request_error",
        "message": "prompt is too long: 5000 tokens > 4096 maximum",
    }
    with pytest.raises(anthropic.InternalServerError) as full:
        sdk(ScriptedEngine(capacity=0)).messages.create(**ASK)
    assert full.value.body["error"]["type"] == "overloaded_error"


def test_an_error_inside_a_stream_is_raised(sdk):
    broken = ScriptedEngine(Script(["begun", ContextOverflow(5000, 4096)]))
    with (
        sdk(broken).messages.stream(**ASK) as stream,
        pytest.raises(anthropic.APIStatusError, match="prompt is too long"),
    ):
        stream.get_final_message()


def test_the_table_knows_every_field_of_the_client():
    headers = {"betas", "user_profile_id", "workspace_id"}
    for params in (
        message_create_params.MessageCreateParamsNonStreaming,
        beta_params.MessageCreateParamsNonStreaming,
        message_count_tokens_params.MessageCountTokensParams,
    ):
        known = set(params.__annotations__)
        assert known - headers <= set(TABLE.fields)
        assert len(known) > 10
