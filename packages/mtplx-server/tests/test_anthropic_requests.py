"""What the engine is asked for, given a Messages body; and what becomes of every other field."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mtplx_client.wire.anthropic import CountTokensRequest, MessagesRequest
from mtplx_engine.constraint import JsonSchema
from mtplx_engine.conversation import Conversation, Message
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import ChatRequest, Limits, Sampling
from mtplx_engine.testing import SCRIPTED_MODEL
from mtplx_engine.tools import Calling, Tool, ToolCall
from mtplx_server.errors import RequestRefused, problem_of
from mtplx_server.protocols.anthropic_messages.decode import decode, prompt
from mtplx_server.protocols.anthropic_messages.encode import MessagesEncoder
from mtplx_server.protocols.anthropic_messages.error import error_reply
from mtplx_server.protocols.anthropic_messages.fields import TABLE
from mtplx_server.protocols.base import Decoded, Served

FIELDS = TABLE.fields
DOCS = Path(__file__).parents[3] / "docs/protocols/anthropic-messages.md"
HI = {"role": "user", "content": "hi"}
SERVED = Served(SCRIPTED_MODEL)
THINKER = Served(replace(SCRIPTED_MODEL, template_variables=frozenset({"enable_thinking"})))
PLAIN = Served(replace(SCRIPTED_MODEL, efforts=(), template_variables=frozenset()))
TIME = {"name": "time", "input_schema": {"type": "object"}}
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def read(served: Served = SERVED, **fields: Any) -> Decoded:
    body = MessagesRequest.model_validate({"messages": [HI], "max_tokens": 100, **fields})
    return decode(body, served, "req_1")


def asked(served: Served = SERVED, **fields: Any) -> ChatRequest:
    (request,) = read(served, **fields).requests
    return request


def conversation(*messages: dict[str, Any], **fields: Any) -> tuple[Message, ...]:
    read_prompt = asked(messages=list(messages), **fields).prompt
    assert isinstance(read_prompt, Conversation)
    return read_prompt.messages


def ignored(served: Served = SERVED, **fields: Any) -> list[str]:
    encoder = read(served, **fields).encoder
    assert isinstance(encoder, MessagesEncoder)
    return encoder.heading.asked.ignored_fields


def problem(served: Served = SERVED, **fields: Any) -> tuple[str | None, str]:
    """The field at fault, and what the client is told."""
    with pytest.raises((RequestRefused, InvalidRequest)) as caught:
        read(served, **fields)
    found = problem_of(caught.value)
    assert found.status == 400
    told = error_reply(found, "req_1").error
    assert told.type == "invalid_request_error"
    assert found.param is None or found.param in told.message
    return found.param, told.message


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def told(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def use(call_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "time", "input": fields}


def result(call_id: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def test_a_bare_request_leaves_all_to_the_model():
    decoded = read()
    expected = ChatRequest(Conversation((Message("user", "hi"),)), limits=Limits(max_tokens=100))
    assert decoded.requests == (expected,)
    assert (decoded.choices, decoded.stream) == (1, False)
    nulls = dict.fromkeys(set(FIELDS) - {"messages", "max_tokens"})
    assert read(**nulls).requests == decoded.requests
    assert ignored(**nulls, unheard_of=None) == []


def test_every_honoured_field_arrives():
    decoded = read(
        temperature=1,
        top_p=0.5,
        top_k=40,
        seed=-7,
        min_tokens=2,
        stop_sequences=["a", "b"],
        stop_token_ids=[3],
        system="Be brief.",
        thinking={"type": "disabled"},
        chat_template_kwargs={"colour": "red"},
        output_config={"effort": "max", "format": {"type": "json_schema", "schema": SCHEMA}},
        tools=[TIME | {"description": "Tells it.", "strict": True}],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        depth=3,
        acceptance="coupled",
        copy_lane=False,
        stream=True,
    )
    assert decoded.stream is True
    assert decoded.requests == (
        ChatRequest(
            Conversation(
                (Message("system", "Be brief."), Message("user", "hi")),
                {"enable_thinking": False, "colour": "red"},
                (Tool("time", "Tells it.", {"type": "object"}, strict=True),),
                effort="high",
            ),
            Sampling(temperature=1.0, top_p=0.5, top_k=40, seed=-7),
            Limits(100, min_tokens=2, stop=("a", "b"), stop_token_ids=(3,)),
            depth=3,
            acceptance="coupled",
            copy_lane=False,
            grammar=JsonSchema(SCHEMA, "output_config.format.schema"),
            calling=Calling(parallel=False),
        ),
    )


def test_the_older_name_of_the_format_is_known():
    form = {"type": "json_schema", "schema": SCHEMA}
    assert asked(output_format=form).grammar == JsonSchema(SCHEMA, "output_format.schema")


def test_the_system_prompt_is_text_or_blocks_of_it():
    system = Message("system", "a\nb"), Message("user", "hi")
    assert conversation(HI, system="a\nb") == system
    assert conversation(HI, system=[text("a", cache_control={"type": "ephemeral"}), text("b")]) == (
        system
    )
    for empty in ("", [], [text("")]):
        assert conversation(HI, system=empty) == (Message("user", "hi"),)


def test_the_billing_header_is_dropped_because_it_differs_each_time():
    first, second = (
        conversation(HI, system=[text(f"x-anthropic-billing-header: v={v};"), text("Be brief.")])
        for v in "12"
    )
    assert first == second == (Message("system", "Be brief."), Message("user", "hi"))


def test_a_system_message_stays_where_it_stands():
    assert conversation(HI, {"role": "system", "content": "Now."}, told(text("a"), text("b"))) == (
        Message("user", "hi"),
        Message("system", "Now."),
        Message("user", "a\nb"),
    )


def test_an_assistants_blocks_are_one_message():
    thought = {"type": "thinking", "thinking": "hm", "signature": ""}
    hidden = {"type": "redacted_thinking", "data": "?"}
    turn = said(thought, text("Let me "), use("1", zone="é"), text("see."), use("2"), hidden)
    calls = ToolCall("time", '{"zone": "é"}', "1"), ToolCall("time", "{}", "2")
    assert conversation(HI, turn)[1] == Message("assistant", "Let me see.", "hm", calls)
    assert ignored(messages=[HI, turn]) == ["messages[].content[].redacted_thinking"]
    silent = {"type": "thinking", "thinking": "", "signature": "mtplx"}
    for turn in (said(), said(silent)):
        assert conversation(HI, turn)[1] == Message("assistant", "")


def test_results_become_messages_in_order():
    turns = (
        HI,
        said(use("1"), use("2"), use("3")),
        told(
            result("2", [text("two"), text("lines")]),
            result("1", "no such zone", is_error=True),
            text("And?"),
            text("Well?"),
            result("3", None),
        ),
    )
    assert conversation(*turns)[2:] == (
        Message("tool", "two\nlines", call_id="2"),
        Message("tool", "Error: no such zone", call_id="1"),
        Message("user", "And?\nWell?"),
        Message("tool", "", call_id="3"),
    )


def test_ids_may_begin_anew_with_every_answer():
    round_ = said(use("1")), told(result("1", "x"))
    assert len(conversation(HI, *round_, *round_)) == 5


WRONG = {
    "no messages": ({"messages": []}, "messages"),
    "only a system prompt": ({"messages": [], "system": "a"}, "messages"),
    "a role that is none": ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].role"),
    "no text": ({"messages": [told({"type": "text"})]}, "messages[0].content[0].text"),
    "an image": ({"messages": [told(IMAGE)]}, "messages[0].content[0]"),
    "an image in a result": (
        {"messages": [HI, said(use("1")), told(result("1", [text("a"), IMAGE]))]},
        "messages[2].content[0].content[1]",
    ),
    "a document": ({"messages": [told({"type": "document"})]}, "messages[0].content[0]"),
    "a search of the vendor's": (
        {"messages": [said({"type": "server_tool_use", "id": "1", "name": "x", "input": {}})]},
        "messages[0].content[0]",
    ),
    "a finding of the vendor's": (
        {"messages": [said({"type": "web_search_tool_result", "content": {"type": "error"}})]},
        "messages[0].content[0]",
    ),
    "a call of a user": ({"messages": [told(use("1"))]}, "messages[0].content[0]"),
    "a result of an assistant": ({"messages": [said(result("1", ""))]}, "messages[0].content[0]"),
    "a call without input": (
        {"messages": [said({"type": "tool_use", "id": "1", "name": "x"})]},
        "messages[0].content[0].input",
    ),
    "a result of no call": (
        {"messages": [HI, told(text("a"), result("9", "x"))]},
        "messages[1].content[1].tool_use_id",
    ),
    "a result too many": (
        {"messages": [said(use("1")), told(result("1", "x"), result("1", "y"))]},
        "messages[1].content[1].tool_use_id",
    ),
    "two calls of one id": ({"messages": [said(use("1"), use("1"))]}, "messages[0].content[1].id"),
    "an image as system": ({"system": [IMAGE]}, "system[0]"),
    "no tokens": ({"max_tokens": 0}, "max_tokens"),
    "too many stops": ({"stop_sequences": ["x"] * 17}, "stop_sequences"),
    "an empty stop": ({"stop_sequences": [""]}, "stop_sequences"),
    "too hot": ({"temperature": 2.5}, "temperature"),
    "no such thinking": ({"thinking": {"type": "hard"}}, "thinking.type"),
    "no such effort": ({"output_config": {"effort": "huge"}}, "output_config.effort"),
    "no such format": ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type"),
    "no schema": ({"output_format": {"type": "json_schema"}}, "output_format.schema"),
    "a tool without a name": ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
    "a tool of a bad name": ({"tools": [TIME | {"name": "a b"}]}, "tools[0].name"),
    "a tool without a schema": ({"tools": [TIME, {"name": "a"}]}, "tools[1].input_schema"),
    "no such choice": ({"tools": [TIME], "tool_choice": {"type": "some"}}, "tool_choice.type"),
    "a choice without a name": (
        {"tools": [TIME], "tool_choice": {"type": "tool"}},
        "tool_choice.name",
    ),
    "a choice of what is not there": (
        {"tools": [TIME], "tool_choice": {"type": "tool", "name": "date"}},
        "tool_choice",
    ),
    "a choice of what is skipped": (
        {"tools": [TIME, SEARCH], "tool_choice": {"type": "tool", "name": "web_search"}},
        "tool_choice.name",
    ),
    "nothing to choose": ({"tools": [SEARCH], "tool_choice": {"type": "any"}}, "tool_choice"),
}


@pytest.mark.parametrize(("fields", "param"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_refused_by_its_place(fields, param):
    assert problem(**fields)[0] == param


@pytest.mark.parametrize("body", [{"messages": [HI]}, {"messages": [HI], "max_tokens": None}])
def test_the_token_limit_must_be_there(serve, body):
    reply = serve().post("/v1/messages", json=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith("max_tokens: ")


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        ({"type": "auto"}, Calling()),
        ({"type": "any"}, Calling("required")),
        ({"type": "any", "disable_parallel_tool_use": True}, Calling("required", parallel=False)),
        ({"type": "tool", "name": "time"}, Calling("required", ("time",), parallel=False)),
        ({"type": "none"}, Calling("none")),
    ],
)
def test_what_may_be_called(choice, calling):
    assert asked(tools=[TIME], tool_choice=choice).calling == calling


def test_tools_of_the_vendor_are_skipped_and_named():
    request = asked(tools=[SEARCH, TIME | {"type": "custom"}], tool_choice={"type": "auto"})
    assert request.prompt.tools == (Tool("time", parameters={"type": "object"}),)
    assert ignored(tools=[SEARCH, TIME]) == ["tools[].web_search_20250305"]
    strict = replace(SERVED, strict_fields=True)
    assert problem(strict, tools=[SEARCH])[0] == "tools[].web_search_20250305"


@pytest.mark.parametrize(
    ("kind", "variables"),
    [
        ("enabled", {"enable_thinking": True}),
        ("disabled", {"enable_thinking": False}),
        ("adaptive", {}),
        ("between_tools", {}),
    ],
)
def test_thinking_is_switched_where_the_template_can(kind, variables):
    thinking = {"type": kind, "display": "summarized"}
    assert asked(THINKER, thinking=thinking).prompt.template_kwargs == variables
    assert ignored(THINKER, thinking=thinking) == []
    assert asked(PLAIN, thinking=thinking).prompt.template_kwargs == {}
    assert ignored(PLAIN, thinking=thinking) == (["thinking.type"] if variables else [])


def test_a_budget_of_thoughts_is_named_even_beyond_all_tokens():
    thinking = {"type": "enabled", "budget_tokens": 32_000}
    assert ignored(THINKER, thinking=thinking, max_tokens=8000) == ["thinking.budget_tokens"]


def test_ignored_fields_are_named_wherever_they_are():
    cached = {"cache_control": {"type": "ephemeral"}}
    found = ignored(
        PLAIN,
        system=[text("a", **cached, colour=1)],
        messages=[
            told(text("a", **cached, citations=[{"x": 1}])),
            {**said(use("1") | {"caller": {"type": "direct"}}), "name": "Ada"},
            told(result("1", [text("b", **cached, size=2)])),
        ],
        tools=[TIME | cached | {"defer_loading": True, "eager_input_streaming": True}],
        tool_choice={"type": "auto", "mood": 1},
        output_config={"effort": "high", "task_budget": {"total": 5}},
        context_management={"edits": []},
        chat_template_kwargs={"colour": "red"},
        metadata={"user_id": "me"},
        colour="red",
    )
    assert sorted(found) == [
        "chat_template_kwargs.colour",
        "colour",
        "context_management",
        "messages[].content[].citations",
        "messages[].content[].content[].size",
        "messages[].name",
        "output_config.effort",
        "output_config.task_budget",
        "system[].colour",
        "tool_choice.mood",
        "tools[].defer_loading",
    ]


def test_a_refused_field_is_refused_but_for_its_neutral_values():
    for name, field in FIELDS.items():
        if field.treatment == "refused":
            assert problem(**{name: [{"type": "x"}]})[0] == name
            for value in field.neutral:
                assert ignored(**{name: value}) == []


def test_the_prompt_of_a_count_is_that_of_the_request():
    fields = {
        "messages": [HI, said(use("1")), told(result("1", "x"))],
        "system": "Be brief.",
        "tools": [TIME, SEARCH],
        "thinking": {"type": "disabled"},
        "output_config": {"effort": "low"},
    }
    body = CountTokensRequest.model_validate(fields)
    assert prompt(body, SERVED).prompt == asked(**fields).prompt


def test_every_honoured_field_says_what_it_does():
    honoured = {field.name: field for field in FIELDS.values() if field.treatment == "honoured"}
    assert set(MessagesRequest.model_fields) == set(honoured)
    assert all(field.note for field in honoured.values())


def test_the_documented_table_is_current(golden_part):
    golden_part(DOCS, "fields", TABLE.markdown())
