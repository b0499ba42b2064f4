"""The official Ollama client, as people use it."""

import asyncio
import json
from threading import Event

import ollama
import pytest

from mtplx_engine.constraint import JsonSchema
from mtplx_engine.conversation import Conversation, RawText
from mtplx_engine.errors import ContextOverflow
from mtplx_engine.events import Likelihood, ScoredToken
from mtplx_engine.request import Limits
from mtplx_engine.testing import Hold, Scored, Script, ScriptedEngine
from mtplx_server.protocols.ollama.fields import CHAT, GENERATE, OPTIONS

HI = [{"role": "user", "content": "hi"}]
THOUGHTFUL = Script(["hm</think>", "Hello", " 🙂\u2028"], thinks=True)
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "東京"}}</tool_call>'


def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: Where.
    """
    return f"{city}: rain"


@pytest.fixture
def sdk(serve):
    clients = []

    def start(engine=None, **settings):
        clients.append(ollama.Client(host=str(serve(engine, **settings).base_url)))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def test_a_whole_answer(sdk):
    answer = sdk(ScriptedEngine(THOUGHTFUL)).chat("any", HI, think=True)
    assert (answer.message.content, answer.message.thinking) == ("Hello 🙂\u2028", "hm")
    assert (answer.model, answer.done, answer.done_reason) == ("org/scripted", True, "stop")
    assert (answer.prompt_eval_count, answer.eval_count) == (7, 3)


def test_a_stream(sdk):
    parts = list(sdk(ScriptedEngine(THOUGHTFUL)).chat("any", HI, stream=True))
    assert "".join(each.message.content for each in parts) == "Hello 🙂\u2028"
    assert "".join(each.message.thinking or "" for each in parts) == "hm"
    assert [each.done for each in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].total_duration == 751_000_000


def test_signs_of_life_say_nothing(sdk):
    release = Event()
    client = sdk(ScriptedEngine(Script([Hold(release), "ok"])), keepalive_s=0.01)
    stream = client.generate("any", "hi", stream=True)
    assert (next(stream).response, release.set()) == ("", None)
    assert "".join(each.response for each in stream) == "ok"


def test_generating(sdk):
    engine = ScriptedEngine()
    client = sdk(engine)
    assert client.generate("any", "Once", raw=True).response == "Hello there"
    parts = list(client.generate("any", "Once", system="Be brief.", stream=True))
    assert "".join(each.response for each in parts) == "Hello there"
    raw, asked = (each.prompt for each in engine.requests)
    assert raw == RawText("Once")
    assert isinstance(asked, Conversation)
    assert [each.text for each in asked.messages] == ["Be brief.", "Once"]
    assert client.generate("any", keep_alive=0).done_reason == "unload"


def test_tools_and_their_results(sdk):
    def play(request):
        results = [each for each in request.prompt.messages if each.role == "tool"]
        return Script(["It rains."]) if results else Script([*CALL, *CALL])

    engine = ScriptedEngine(play)
    client = sdk(engine)
    for stream in (False, True):
        answer = client.chat("any", HI, tools=[weather], stream=stream)
        parts = list(answer) if stream else [answer]
        calls = [call for each in parts for call in each.message.tool_calls or ()]
        assert [call.function.name for call in calls] == ["weather", "weather"]
        assert calls[0].function.arguments == {"city": "東京"}
        said = ollama.Message(role="assistant", tool_calls=calls)
        results = [
            {"role": "tool", "tool_name": "weather", "content": weather(**call.function.arguments)}
            for call in calls
        ]
        answer = client.chat("any", [*HI, said, *results], tools=[weather])
        assert answer.message.content == "It rains."
        _, assistant, *told = engine.requests[-1].prompt.messages
        assert [each.call_id for each in told] == [call.id for call in assistant.calls]
    (tool,) = engine.requests[-1].prompt.tools
    assert tool.parameters["properties"]["city"]["type"] == "string"


def test_schemas_and_options(sdk):
    engine = ScriptedEngine()
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    options = ollama.Options(temperature=0, num_ctx=2048, num_predict=2, stop=["x"])
    sdk(engine).chat("any", HI, format=schema, options=options, keep_alive="5m")
    (request,) = engine.requests
    assert request.grammar == JsonSchema(schema, "format")
    assert request.limits == Limits(max_tokens=2, stop=("x",))
    assert request.sampling.temperature == 0


def test_scores(sdk):
    likely = Likelihood(7, "a", b"a", -0.25)
    engine = ScriptedEngine(Script([Scored("a", ScoredToken(likely, (likely,)))]))
    answer = sdk(engine).chat("any", HI, logprobs=True, top_logprobs=1)
    (score,) = answer.logprobs
    assert (score.token, score.logprob) == ("a", -0.25)
    assert score.top_logprobs[0].token == "a"


def test_models(sdk):
    client = sdk()
    (model,) = client.list().models
    assert (model.model, model.details.format) == ("org/scripted", "mlx")
    assert model.modified_at.year == 2023
    (loaded,) = client.ps().models
    assert (loaded.context_length, loaded.expires_at.year) == (4096, 9999)
    shown = client.show("org/scripted")
    assert shown.modelinfo["script.context_length"] == 4096
    assert "completion" in shown.capabilities
    assert client.pull("org/scripted").status == "success"
    assert [each.status for each in client.pull("org/scripted", stream=True)] == ["success"]


def test_errors_are_raised(sdk):
    client = sdk(ScriptedEngine(Script(rejection=ContextOverflow(5000, 4096))))
    with pytest.raises(ollama.ResponseError, match="5000") as caught:
        client.chat("any", HI)
    assert caught.value.status_code == 400
    with pytest.raises(ollama.ResponseError, match="5000"):
        list(client.chat("any", HI, stream=True))
    with pytest.raises(ollama.ResponseError, match="mtplx serve MODEL"):
        client.pull("llama")
    with pytest.raises(ollama.ResponseError, match="embedding"):
        client.embed("any", "a")
    with pytest.raises(ollama.ResponseError) as caught:
        client.copy("a", "b")
    assert caught.value.status_code == 404


def test_an_error_inside_a_stream_is_raised(sdk):
    broken = ScriptedEngine(Script(["begun", ContextOverflow(5000, 4096)]))
    with pytest.raises(ollama.ResponseError, match="5000"):
        list(sdk(broken).chat("any", HI, stream=True))


def test_the_asynchronous_client(serve):
    url = str(serve(ScriptedEngine(THOUGHTFUL)).base_url)

    async def talk():
        async with ollama.AsyncClient(host=url) as client:
            whole = await client.chat("any", HI)
            parts = [each async for each in await client.chat("any", HI, stream=True)]
        return whole.message.content, "".join(each.message.content for each in parts)

    assert asyncio.run(talk()) == ("Hello 🙂\u2028", "Hello 🙂\u2028")


def test_the_tables_know_every_field_of_the_sdk():
    kinds = {ollama._types.ChatRequest: CHAT, ollama._types.GenerateRequest: GENERATE}
    for kind, table in {**kinds, ollama.Options: OPTIONS}.items():
        assert set(kind.model_fields) <= set(table.fields)
        assert len(kind.model_fields) > 8


# As version 0.6.3 sends them.
FUNCTION = {
    "name": "weather",
    "description": "Tell it.",
    "parameters": {
        "type": "object",
        "required": ["city"],
        "properties": {"city": {"type": "string", "description": "Where."}},
    },
}
SCHEMA = {
    "properties": {"a": {"title": "A", "type": "integer"}},
    "required": ["a"],
    "title": "A",
    "type": "object",
}
CHATS = {
    "plain": {"stream": False},
    "tools": {"stream": True, "tools": [{"type": "function", "function": FUNCTION}]},
    "schema": {
        "stream": False,
        "options": {"temperature": 0, "num_ctx": 2048},
        "format": SCHEMA,
        "keep_alive": "5m",
    },
    "thoughts": {"stream": False, "think": True, "logprobs": True, "top_logprobs": 2},
}


@pytest.mark.parametrize("fields", CHATS.values(), ids=CHATS.keys())
def test_nothing_that_it_sends_is_without_effect(serve, fields):
    body = {"model": "any", "messages": HI, "tools": [], **fields}
    reply = serve().post("/api/chat", json=body)
    assert reply.status_code == 200
    last = json.loads(reply.text.splitlines()[-1])
    assert last["mtplx"]["ignored_fields"] == []
