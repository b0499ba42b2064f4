"""What the engine is asked for, given a body of Responses, and what becomes of other fields."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai.types.responses import input_token_count_params, response_create_params
from responses_reading import (
    PLAIN,
    SERVED,
    asked,
    conversation,
    ignored,
    problem,
    prompt,
    read,
)

from mtplx_client.wire.responses import InputTokensRequest, ResponsesRequest
from mtplx_engine.constraint import JsonObject, JsonSchema
from mtplx_engine.conversation import Conversation, Message
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import ChatRequest, Limits, Sampling
from mtplx_engine.testing import SCRIPTED_MODEL
from mtplx_engine.tools import Calling, Tool, ToolCall
from mtplx_server.errors import RequestRefused
from mtplx_server.protocols.base import Served
from mtplx_server.protocols.openai_responses import sealed
from mtplx_server.protocols.openai_responses.decode import counted
from mtplx_server.protocols.openai_responses.fields import COUNT_TABLE, TABLE

FIELDS = TABLE.fields
DOCS = Path(__file__).parents[3] / "docs/protocols/openai-responses.md"
TIME = {"type": "function", "name": "time"}
CALL = {"type": "function_call", "call_id": "c1", "name": "time", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "noon"}


def text(kind: str, said: str) -> dict[str, str]:
    return {"type": kind, "text": said}


def test_a_bare_request_leaves_all_to_the_model():
    decoded = read()
    assert decoded.requests == (ChatRequest(Conversation((Message("user", "hi"),))),)
    assert (decoded.choices, decoded.stream) == (1, False)
    nulls = dict.fromkeys(set(FIELDS) - {"input"})
    assert read(**nulls).requests == decoded.requests
    assert ignored(**nulls, unheard_of=None) == []


def test_every_honoured_field_arrives():
    decoded = read(
        model="any",
        instructions="Be brief.",
        temperature=1,
        top_p=0.5,
        top_k=40,
        seed=-7,
        stop_token_ids=[3],
        min_tokens=2,
        max_output_tokens=5,
        depth=3,
        acceptance="coupled",
        copy_lane=False,
        chat_template_kwargs={"enable_thinking": False},
        reasoning={"effort": "xhigh", "summary": "auto"},
        text={"format": {"type": "json_object"}, "verbosity": "medium"},
        include=["message.output_text.logprobs"],
        top_logprobs=4,
        tools=[{**TIME, "description": "Tells it.", "strict": True}],
        tool_choice="none",
        parallel_tool_calls=False,
        metadata={"a": "b"},
        stream=True,
    )
    assert decoded.stream
    assert decoded.requests == (
        ChatRequest(
            Conversation(
                (Message("system", "Be brief."), Message("user", "hi")),
                {"enable_thinking": False},
                (Tool("time", "Tells it.", strict=True),),
                effort="high",
            ),
            Sampling(temperature=1.0, top_p=0.5, top_k=40, seed=-7),
            Limits(max_tokens=5, min_tokens=2, stop_token_ids=(3,)),
            depth=3,
            acceptance="coupled",
            copy_lane=False,
            logprobs=4,
            grammar=JsonObject(),
            calling=Calling("none", parallel=False),
        ),
    )


def test_messages_may_go_without_a_type_and_keep_order_and_words():
    assert conversation(
        {"role": "developer", "content": "Be brief.", "id": "msg_1", "type": "message"},
        {"role": "user", "content": [text("input_text", "a"), text("text", "b")]},
        {
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [
                {**text("output_text", "c"), "annotations": [], "logprobs": []},
                {"type": "refusal", "refusal": "d"},
            ],
        },
        {"role": "system", "content": ""},
        instructions="First.",
    ) == (
        Message("system", "First."),
        Message("system", "Be brief."),
        Message("user", "a\nb"),
        Message("assistant", "c\nd"),
        Message("system", ""),
    )


def test_the_items_of_a_turn_are_one_message():
    thought = {"type": "reasoning", "summary": [], "content": [text("reasoning_text", "hm")]}
    said = {"role": "assistant", "content": "Let me see."}
    second = {**CALL, "call_id": "c2", "name": "date", "namespace": "ns"}
    first_turn = (ToolCall("time", "{}", "c1"), ToolCall("ns__date", "{}", "c2"))
    assert conversation(
        {"role": "user", "content": "hi"},
        thought,
        said,
        CALL,
        second,
        OUTPUT,
        {**OUTPUT, "call_id": "c2", "output": [text("input_text", "today")]},
        {**thought, "content": None, "summary": [text("summary_text", "so")]},
        {"type": "custom_tool_call", "call_id": "c3", "name": "sh", "input": 'echo "é"'},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "é"},
        {"role": "assistant", "content": "Done."},
    ) == (
        Message("user", "hi"),
        Message("assistant", "Let me see.", "hm", first_turn),
        Message("tool", "noon", call_id="c1"),
        Message("tool", "today", call_id="c2"),
        Message("assistant", "", "so", (ToolCall("sh", '{"input": "echo \\"é\\""}', "c3"),)),
        Message("tool", "é", call_id="c3"),
        Message("assistant", "Done."),
    )


@pytest.mark.parametrize("thought", ["hm", "日本語\n", "a" * 5000])
def test_sealed_thoughts_can_be_opened(thought):
    item = {"type": "reasoning", "summary": [], "encrypted_content": sealed.sealed(thought)}
    assert conversation(item) == (Message("assistant", "", thought),)
    assert ignored(input=[item]) == []


@pytest.mark.parametrize("content", ["ZW5j", "mtplx:?", "mtplx:/w==", "mtplx:é"])
def test_thoughts_that_others_sealed_are_ignored_and_named(content):
    item: dict[str, Any] = {"type": "reasoning", "summary": [], "encrypted_content": content}
    hi = {"role": "user", "content": "hi"}
    assert conversation(hi, item) == (Message("user", "hi"),)
    assert ignored(input=[hi, item]) == ["input[].encrypted_content"]
    # Where they can be read, nothing is lost.
    item["summary"] = [text("summary_text", "hm")]
    assert ignored(input=[hi, item]) == []


@pytest.mark.parametrize("given", ["", [], None])
def test_an_empty_input_is_accepted(given):
    assert prompt(input=given, instructions="Be.").messages == (
        Message("system", "Be."),
        Message("user", ""),
    )


WRONG_ITEMS = {
    "unknown type": ({"type": "web_search_call", "id": "x"}, "input[0].type"),
    "reference": ({"type": "item_reference", "id": "x"}, "input[0]"),
    "no role": ({"content": "hi"}, "input[0].role"),
    "unknown role": ({"role": "tool", "content": "hi"}, "input[0].role"),
    "no content": ({"role": "user"}, "input[0].content"),
    "image": (
        {"role": "user", "content": [text("input_text", "x"), {"type": "input_image"}]},
        "input[0].content[1]",
    ),
    "file": ({"role": "user", "content": [{"type": "input_file"}]}, "input[0].content[0]"),
    "part without text": (
        {"role": "user", "content": [{"type": "input_text"}]},
        "input[0].content[0].text",
    ),
    "call without id": ({"type": "function_call", "name": "f"}, "input[0].call_id"),
    "call without name": ({"type": "function_call", "call_id": "c"}, "input[0].name"),
    "call without arguments": (
        {"type": "function_call", "call_id": "c", "name": "f"},
        "input[0].arguments",
    ),
    "custom call without input": (
        {"type": "custom_tool_call", "call_id": "c", "name": "f"},
        "input[0].input",
    ),
    "no output": ({"type": "function_call_output", "call_id": "c"}, "input[0].output"),
    "image as output": (
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image"}]},
        "input[0].output[0]",
    ),
    "output of no call": (OUTPUT, "input[0].call_id"),
}


@pytest.mark.parametrize(("item", "path"), WRONG_ITEMS.values(), ids=WRONG_ITEMS.keys())
def test_wrong_items_are_refused_by_path(item, path):
    param, message = problem(input=[item], instructions="Be.")
    assert param == path
    assert path in message
    assert "messages" not in message


def test_calls_with_one_id_are_refused_by_path():
    for call_id in ("a", "messages[99]", "input[0]"):
        call = CALL | {"call_id": call_id}
        param, message = problem(input=[{"role": "user", "content": "hi"}, call, call])
        assert param == "input[2].call_id"
        assert message.startswith(f"input[2].call_id is {call_id!r}")


def test_a_number_in_place_of_a_field_that_is_off_is_named():
    assert "input[].weird" in ignored(input=[{"role": "user", "content": "a", "weird": 0}])


def test_the_forms_of_an_answer():
    schema = {"type": "object"}
    form = {"type": "json_schema", "name": "x", "schema": schema, "strict": True}
    assert asked(text={"format": form}).grammar == JsonSchema(schema, "text.format.schema")
    assert asked(text={"format": {"type": "text"}}).grammar is None
    assert problem(text={"format": {"type": "json_schema", "name": "x"}})[0] == "text.format.schema"
    assert problem(text={"format": {"type": "xml"}})[0] == "text.format.type"


def test_ignored_fields_are_named_wherever_they_are():
    found = ignored(
        PLAIN,
        input=[
            {"role": "user", "name": "Ada", "content": [{**text("input_text", "a"), "cache": 1}]},
            {"role": "user", "content": "b", "call_id": "c"},
        ],
        tools=[{**TIME, "defer_loading": True}],
        text={"verbosity": "low"},
        reasoning={"effort": "high", "summary": "auto", "context": "all_turns"},
        include=["reasoning.encrypted_content", "web_search_call.results"],
        top_logprobs=2,
        truncation="auto",
        max_tool_calls=3,
        colour="red",
        client_metadata={"x": "y"},
        prompt_cache_key="k",
        stream_options={"include_obfuscation": False},
    )
    assert sorted(found) == [
        "colour",
        "include.web_search_call.results",
        "input[].call_id",
        "input[].content[].cache",
        "input[].name",
        "max_tool_calls",
        "reasoning.context",
        "reasoning.effort",
        "text.verbosity",
        "tools[].defer_loading",
        "top_logprobs",
        "truncation",
    ]
    with pytest.raises(RequestRefused, match="colour"):
        read(Served(SCRIPTED_MODEL, strict_fields=True), colour="red")


def test_limits_are_checked():
    assert asked(max_output_tokens=1).limits.max_tokens == 1
    with pytest.raises(InvalidRequest, match="max_output_tokens must be"):
        read(max_output_tokens=0)
    assert problem(top_logprobs=21)[0] == "top_logprobs"
    assert problem(reasoning={"effort": "huge"})[0] == "reasoning.effort"
    knows = Served(replace(SCRIPTED_MODEL, template_variables=frozenset()))
    assert ignored(knows, chat_template_kwargs={"x": 1}) == ["chat_template_kwargs.x"]


def test_another_model_is_refused_by_a_strict_server():
    with pytest.raises(RequestRefused, match="does not exist"):
        read(Served(SCRIPTED_MODEL, strict_model=True), model="other")


REFUSED = [field for field in FIELDS.values() if field.treatment == "refused"]


@pytest.mark.parametrize("field", REFUSED, ids=lambda field: field.name)
def test_a_refused_field_is_refused_but_for_its_neutral_values(field):
    for value in ({"some": "thing"}, [1, 2], 0.25, "strange", True):
        param, message = problem(**{field.name: value})
        assert param == field.name
        assert field.note in message
    for value in (*field.neutral, None):
        assert ignored(**{field.name: value}) == []


def test_what_is_counted_is_what_would_be_read():
    fields = {
        "input": [{"role": "user", "content": "hi"}, CALL, OUTPUT],
        "instructions": "Be.",
        "tools": [TIME],
        "tool_choice": "required",
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_object"}},
    }
    body = InputTokensRequest.model_validate(fields)
    assert counted(body, SERVED) == asked(**fields)
    refused = InputTokensRequest.model_validate({"input": "hi", "previous_response_id": "r"})
    with pytest.raises(RequestRefused, match="Nothing is stored"):
        counted(refused, SERVED)
    ignored_field = InputTokensRequest.model_validate({"input": "hi", "personality": "friendly"})
    with pytest.raises(RequestRefused, match="personality"):
        counted(ignored_field, Served(SCRIPTED_MODEL, strict_fields=True))


def test_the_body_that_is_going_to_be_sent_can_be_counted():
    strict = Served(SCRIPTED_MODEL, strict_fields=True)
    body = {"input": "hi", "max_output_tokens": 9, "include": [], "temperature": 1, "store": False}
    assert counted(InputTokensRequest.model_validate(body), strict) == asked(input="hi")


def test_the_tables_know_every_field_of_the_openai_sdk():
    known = response_create_params.ResponseCreateParamsNonStreaming.__annotations__
    base = response_create_params.ResponseCreateParamsBase.__annotations__
    assert {*known, *base} <= set(FIELDS)
    assert len(base) > 25
    counts = input_token_count_params.InputTokenCountParams.__annotations__
    assert set(counts) <= set(COUNT_TABLE.fields)


def test_every_honoured_field_says_what_it_does():
    honoured = {field.name: field for field in FIELDS.values() if field.treatment == "honoured"}
    assert set(ResponsesRequest.model_fields) == set(honoured)
    assert all(field.note for field in honoured.values())


def test_the_documented_table_is_current(golden_part):
    golden_part(DOCS, "fields", TABLE.markdown())
