"""Both clients against a real server, and what they raise."""

import asyncio
import json
import subprocess
import sys
from threading import Event

import pytest

import mtplx_client
from mtplx_client import (
    AsyncClient,
    BadRequest,
    ChatCompletionRequest,
    ChatMessage,
    Client,
    CompletionRequest,
    ConnectionFailed,
    InvalidReply,
    NotFound,
    ServiceUnavailable,
    StreamFailed,
    StreamInterrupted,
    accumulate,
    calls,
)
from mtplx_client._sse import ServerEvent
from mtplx_client.errors import StatusError, status_error
from mtplx_client.wire.chat import (
    ChatTool,
    FunctionCall,
    FunctionDefinition,
    ResponseFormat,
    SchemaFormat,
)
from mtplx_engine.errors import InvalidRequest, NonFiniteLogits
from mtplx_engine.testing import Hold, Script, ScriptedEngine
from mtplx_server.testing import serving

HI = ChatCompletionRequest(messages=[ChatMessage(role="user", content="hi")])
THOUGHTFUL = Script(["hm</think>", "Hello", " 🙂"], thinks=True)


@pytest.fixture
def client():
    with serving(ScriptedEngine(THOUGHTFUL)) as url, Client(url) as client:
        yield client


def test_a_whole_answer_and_a_stream_agree(client):
    whole = client.chat(HI)
    assert whole.choices[0].message.content == "Hello 🙂"
    assert whole.choices[0].message.reasoning_content == "hm"
    with client.stream_chat(HI) as chunks:
        joined = accumulate(chunks)
    assert joined.choices == whole.choices


def test_calls_scores_and_several_answers_are_joined():
    call = '<tool_call>{"name": "f", "arguments": {"a": "b"}}</tool_call>'
    tool = ChatTool(type="function", function=FunctionDefinition(name="f"))
    request = HI.model_copy(update={"tools": [tool], "n": 2})
    with serving(ScriptedEngine(Script(["I call. ", *call]))) as url, Client(url) as client:
        whole = client.chat(request)
        with client.stream_chat(request) as chunks:
            joined = accumulate(chunks)
    assert [choice.finish_reason for choice in joined.choices] == ["tool_calls"] * 2
    for ours, theirs in zip(joined.choices, whole.choices, strict=True):
        assert ours.message.content == theirs.message.content == "I call."
        (one,), (other,) = ours.message.tool_calls, theirs.message.tool_calls
        assert one.function == other.function == FunctionCall(name="f", arguments='{"a": "b"}')


def test_a_text_is_continued_whole_or_in_chunks(client):
    request = CompletionRequest(prompt="Once", n=2, max_tokens=9)
    whole = client.complete(request)
    assert [choice.text for choice in whole.choices] == ["hm</think>Hello 🙂"] * 2
    with client.stream_complete(request) as chunks:
        parts = [part for chunk in chunks for part in chunk.choices]
    for at, choice in enumerate(whole.choices):
        assert "".join(part.text for part in parts if part.index == at) == choice.text


def test_a_name_that_python_keeps_is_written_as_the_wire_has_it():
    form = ResponseFormat(type="json_schema", json_schema=SchemaFormat(schema_={"type": "null"}))
    sent = json.loads(calls.chat(HI.model_copy(update={"response_format": form})).content)
    wanted = {"type": "json_schema", "json_schema": {"schema": {"type": "null"}}}
    assert sent["response_format"] == wanted


def test_models_and_health(client):
    assert [card.id for card in client.models().data] == ["org/scripted"]
    assert client.model("org/scripted").context_length == 4096
    assert client.health().status == "ok"
    with pytest.raises(NotFound) as caught:
        client.model("no/such?")
    assert (caught.value.code, caught.value.status) == ("model_not_found", 404)
    assert caught.value.request_id.startswith("req_")


def test_the_asynchronous_client_does_the_same():
    async def talk(url: str):
        async with AsyncClient(url) as client:
            whole = await client.chat(HI)
            async with client.stream_chat(HI) as chunks:
                joined = accumulate([chunk async for chunk in chunks])
            assert joined.choices == whole.choices
            text = CompletionRequest(prompt="Once", max_tokens=9)
            continued = (await client.complete(text)).choices[0].text
            async with client.stream_complete(text) as pieces:
                parts = [part.text async for piece in pieces for part in piece.choices]
            assert "".join(parts) == continued
            assert (await client.model("org/scripted")).id == (await client.models()).data[0].id
            assert (await client.health()).status == "ok"
            with pytest.raises(BadRequest):
                await client.chat(HI.model_copy(update={"temperature": 3.0}))
            with pytest.raises(BadRequest):
                async with client.stream_chat(HI.model_copy(update={"temperature": 3.0})):
                    pass

    with serving(ScriptedEngine(THOUGHTFUL)) as url:
        asyncio.run(talk(url))


def test_refusals_are_raised_from_both_kinds_of_call():
    engine = ScriptedEngine(Script(rejection=InvalidRequest("No.", "stop")))
    with serving(engine) as url, Client(url) as client:
        with pytest.raises(BadRequest, match="No") as caught:
            client.chat(HI)
        assert caught.value.param == "stop"
        with pytest.raises(BadRequest, match="No"), client.stream_chat(HI):
            pass


def test_a_failure_inside_a_stream_is_raised_after_what_came_before():
    engine = ScriptedEngine(Script(["begun", NonFiniteLogits("NaN.")]))
    with serving(engine) as url, Client(url) as client, client.stream_chat(HI) as chunks:
        assert next(chunks).choices[0].delta.role == "assistant"
        assert next(chunks).choices[0].delta.content == "begun"
        with pytest.raises(StreamFailed) as caught:
            next(chunks)
    assert caught.value.code == "non_finite_logits"


def test_leaving_a_stream_cancels_it():
    engine = ScriptedEngine(Script(["a", Hold(Event())]))
    with serving(engine) as url, Client(url) as client:
        with client.stream_chat(HI) as chunks:
            next(chunks)
        assert engine.wait_idle(30)
        assert len(engine.cancelled) == 1


def test_an_unhealthy_server_still_tells_its_health():
    engine = ScriptedEngine()
    with serving(engine) as url, Client(url) as client:
        engine.fail("worn out")
        assert (client.health().status, client.health().reason) == ("failed", "worn out")
        with pytest.raises(ServiceUnavailable):
            client.chat(HI)


def test_nobody_there():
    with serving(ScriptedEngine()) as url:
        pass
    with Client(url) as client:
        with pytest.raises(ConnectionFailed):
            client.health()
        with pytest.raises(ConnectionFailed), client.stream_chat(HI):
            pass


def test_a_stream_without_an_end_is_not_an_answer():
    with pytest.raises(StreamInterrupted):
        accumulate([])


@pytest.mark.parametrize("kind", StatusError.__subclasses__(), ids=lambda kind: kind.__name__)
def test_each_status_has_its_class(kind):
    body = b'{"error": {"message": "m", "type": "t", "param": "p", "code": "c"}}'
    error = status_error(kind.expected_status, body, "req_1")
    assert type(error) is kind
    assert (str(error), error.type, error.param, error.code) == ("m", "t", "p", "c")
    assert error.request_id == "req_1"


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b'{"error": "x"}'])
def test_an_error_without_the_envelope_is_still_an_error(body):
    error = status_error(418, body, None)
    assert type(error) is StatusError
    assert error.status == 418
    assert str(error)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"id": 1}'])
def test_an_answer_that_makes_no_sense_is_told_apart(body):
    with pytest.raises(InvalidReply):
        calls.chat(HI).parse(200, {}, body)
    with pytest.raises(InvalidReply):
        calls.chat_stream(HI).parse_event(ServerEvent("{}"))


def test_unset_fields_are_not_sent():
    sent = json.loads(calls.chat(HI).content or b"")
    assert sent == {"messages": [{"role": "user", "content": "hi"}], "stream": False}


def test_the_wire_types_do_not_load_the_http_library():
    code = "import mtplx_client.wire.chat, mtplx_client, sys; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_there():
    assert mtplx_client.__all__ == sorted(mtplx_client.__all__, key=str)
    assert all(hasattr(mtplx_client, name) for name in mtplx_client.__all__)
    with pytest.raises(AttributeError):
        _ = mtplx_client.nothing


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]", "example.org"])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_proxies_of_the_environment_are_for_other_machines(kind, host, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "nonsense://proxy")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    if host == "example.org":
        with pytest.raises(ConnectionFailed, match="cannot be connected to"):
            kind(f"http://{host}:1")
    else:
        kind(f"http://{host}:1")


@pytest.mark.parametrize(
    "url", ["http://a:b", "http://a\tb", f"http://{'a' * 64}.b", "http://a..b"]
)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_url_that_is_none_is_said_at_once(kind, url):
    with pytest.raises(ConnectionFailed, match="cannot be connected to"):
        kind(url)
