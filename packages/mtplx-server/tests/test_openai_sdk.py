"""The official OpenAI client, as people use it."""

import asyncio

import openai
import pytest

from mtplx_engine.errors import ContextOverflow
from mtplx_engine.testing import Script, ScriptedEngine

HI = [{"role": "user", "content": "hi"}]
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


def test_a_whole_answer(sdk):
    answer = sdk(ScriptedEngine(THOUGHTFUL)).chat.completions.create(model="any", messages=HI)
    assert answer.choices[0].message.content == "Hello 🙂"
    assert answer.choices[0].message.reasoning_content == "hm"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == 10
    assert answer.model == "org/scripted"
    assert answer._request_id.startswith("req_")


def test_a_stream(sdk):
    with sdk(ScriptedEngine(THOUGHTFUL)).chat.completions.create(
        model="any", messages=HI, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text == "Hello 🙂"
    assert chunks[-1].usage.completion_tokens == 3
    assert chunks[-2].choices[0].finish_reason == "stop"


def test_the_streaming_helper(sdk):
    with sdk().chat.completions.stream(model="any", messages=HI) as stream:
        answer = stream.get_final_completion()
    assert answer.choices[0].message.content == "Hello there"


def test_the_asynchronous_client(serve):
    url = f"{serve(ScriptedEngine(THOUGHTFUL)).base_url}/v1"

    async def talk():
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
            whole, stream = await asyncio.gather(
                client.chat.completions.create(model="any", messages=HI),
                client.chat.completions.create(model="any", messages=HI, stream=True),
            )
            async with stream:
                pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            return whole.choices[0].message.content, "".join(pieces)

    assert asyncio.run(talk()) == ("Hello 🙂", "Hello 🙂")


def test_models(sdk):
    client = sdk()
    assert [model.id for model in client.models.list()] == ["org/scripted"]
    assert client.models.retrieve("org/scripted").context_length == 4096
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no/such")


def test_errors_arrive_as_the_classes_that_people_catch(sdk):
    client = sdk(ScriptedEngine(Script(rejection=ContextOverflow(5000, 4096))))
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="any", messages=HI)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.InternalServerError):
        sdk(ScriptedEngine(capacity=0)).chat.completions.create(model="any", messages=HI)


def test_an_error_inside_a_stream_is_raised(sdk):
    broken = ScriptedEngine(Script(["begun", ContextOverflow(5000, 4096)]))
    stream = sdk(broken).chat.completions.create(model="any", messages=HI, stream=True)
    with stream, pytest.raises(openai.APIError, match="maximum context length"):
        list(stream)
