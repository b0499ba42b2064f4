"""Responses through the official OpenAI client, as people use it."""

import openai
import pytest
from openai.types.responses import Response
from pydantic import BaseModel
from scenarios import CALL, SCENARIOS

from mtplx_engine.errors import ContextOverflow
from mtplx_engine.testing import Script, ScriptedEngine

TIME = {
    "type": "function",
    "name": "time",
    "description": "Tells the time.",
    "parameters": {"type": "object"},
    "strict": False,
}
THOUGHTFUL = Script(["hm</think>", "Hello", " 🙂"], thinks=True)


@pytest.fixture
def sdk(serve):
    clients = []

    def start(engine=None):
        url = f"{serve(engine).base_url}/v1"
        clients.append(openai.OpenAI(base_url=url, api_key="none", max_retries=0))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "a failure"])
def test_every_answer_is_what_the_sdk_says_it_is(sdk, scenario):
    client = sdk(ScriptedEngine(SCENARIOS[scenario]))
    fields = {
        "model": "any",
        "input": "hi",
        "tools": [TIME],
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
    }
    whole = client.responses.create(**fields)
    Response.model_validate(whole.model_dump(exclude_unset=True))
    events = list(client.responses.create(**fields, stream=True))
    for event in events:
        type(event).model_validate(event.model_dump(exclude_unset=True))
    last = events[-1].response
    assert (last.status, last.output_text) == (whole.status, whole.output_text)
    assert last.usage == whole.usage


def test_a_whole_answer(sdk):
    answer = sdk(ScriptedEngine(THOUGHTFUL)).responses.create(model="any", input="hi")
    assert answer.output_text == "Hello 🙂"
    assert answer.output[0].content[0].text == "hm"
    assert answer.usage.total_tokens == 10
    assert answer._request_id.startswith("req_")


def test_the_streaming_helper(sdk):
    client = sdk(ScriptedEngine(SCENARIOS["thoughts, text, two calls"]))
    with client.responses.stream(model="any", input="hi", tools=[TIME]) as stream:
        kinds = [event.type for event in stream]
        answer = stream.get_final_response()
    assert kinds.count("response.output_item.done") == 4
    assert answer.output_text == "Let me see."
    calls = [item for item in answer.output if item.type == "function_call"]
    assert [call.arguments for call in calls] == ['{"zone": "Asia/Tokyo"}'] * 2


def test_a_round_with_a_tool(sdk):
    def play(request):
        last = request.prompt.messages[-1]
        return Script([f"It is {last.text}."] if last.role == "tool" else [CALL])

    client = sdk(ScriptedEngine(play))
    given = [{"role": "user", "content": "What time is it?"}]
    answer = client.responses.create(model="any", input=given, tools=[TIME])
    (call,) = answer.output
    given += [call, {"type": "function_call_output", "call_id": call.call_id, "output": "noon"}]
    answer = client.responses.create(model="any", input=given, tools=[TIME])
    assert answer.output_text == "It is noon."


def test_parsed_answers(sdk):
    class Colour(BaseModel):
        name: str

    engine = ScriptedEngine(Script(['{"name": "red"}']))
    answer = sdk(engine).responses.parse(model="any", input="hi", text_format=Colour)
    assert answer.output_parsed == Colour(name="red")
    assert engine.requests[0].grammar.schema["required"] == ["name"]


def test_counting(sdk):
    counted = sdk().responses.input_tokens.count(model="any", input="hi", tools=[TIME])
    assert counted.input_tokens == 7


def test_errors_arrive_as_the_classes_that_people_catch(sdk):
    client = sdk()
    with pytest.raises(openai.BadRequestError, match="Nothing is stored") as caught:
        client.responses.create(model="any", input="hi", previous_response_id="resp_1")
    assert caught.value.param == "previous_response_id"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_1")


def test_a_failure_inside_a_stream_arrives(sdk):
    client = sdk(ScriptedEngine(Script(["begun", ContextOverflow(5000, 4096)])))
    events = list(client.responses.create(model="any", input="hi", stream=True))
    assert (events[-2].code, events[-2].param) == ("context_length_exceeded", "input")
    assert events[-1].response.error.code == "context_length_exceeded"
