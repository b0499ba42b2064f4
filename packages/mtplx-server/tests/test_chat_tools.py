"""Tools, calls, results, forms and efforts of a chat request, as the engine is asked for them."""

from typing import Any

import pytest
from chat_reading import HI, TIME, WEATHER, asked, conversation, problem

from mtplx_engine.constraint import JsonObject, JsonSchema, Lark, Regex
from mtplx_engine.conversation import Conversation, Message
from mtplx_engine.tools import Calling, ToolCall

CALL = {"id": "c1", "type": "function", "function": {"name": "time", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "noon"}


def test_calls_and_results_in_the_history():
    parts = {**RESULT, "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "on"}]}
    for result, text in ((RESULT, "noon"), (parts, "no\non")):
        assert conversation(HI, CALLED, result) == (
            Message("user", "hi"),
            Message("assistant", "", calls=(ToolCall("time", "{}", "c1"),)),
            Message("tool", text, call_id="c1"),
        )


def test_broken_arguments_in_the_history_are_passed_on():
    broken = {**CALL, "function": {"name": "time", "arguments": '{"a": '}}
    (_, said, _) = conversation(HI, {**CALLED, "tool_calls": [broken]}, RESULT)
    assert said.calls[0].arguments == '{"a": '


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([HI, RESULT], "messages[1].tool_call_id"),
        ([HI, CALLED, RESULT, RESULT], "messages[3].tool_call_id"),
        ([HI, CALLED, {**RESULT, "tool_call_id": "c2"}], "messages[2].tool_call_id"),
        ([HI, CALLED, {"role": "tool", "content": "x"}], "messages[2].tool_call_id"),
        ([HI, {**CALLED, "tool_calls": [CALL, CALL]}], "messages[1].tool_calls"),
        ([HI, CALLED, {"role": "tool", "tool_call_id": "c1"}], "messages[2].content"),
        ([HI, {**CALLED, "tool_calls": [{**CALL, "type": "custom"}]}], None),
        ([HI, {"role": "function", "content": "x", "name": "f"}], "messages[1].role"),
    ],
)
def test_results_belong_to_calls(messages, param):
    found, message = problem(messages=messages)
    assert found == (param or "messages[1].tool_calls[0].type")
    assert found in message or "c1" in message


def test_the_same_id_may_be_used_again_by_later_calls():
    conversation(HI, CALLED, RESULT, CALLED, RESULT, HI)


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def allowed(mode: str, *names: str) -> dict[str, Any]:
    tools = [named(name) for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        (None, Calling()),
        ("auto", Calling()),
        ("none", Calling("none")),
        ("required", Calling("required")),
        (named("time"), Calling("required", ("time",), parallel=False)),
        (allowed("auto", "time"), Calling("auto", ("time",))),
        (allowed("required", "weather", "time"), Calling("required", ("weather", "time"))),
    ],
)
def test_tool_choice(choice, calling):
    assert asked(tools=[WEATHER, TIME], tool_choice=choice).calling == calling


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [], "tool_choice": "required"}, "tool_choice"),
        ({"tools": [TIME], "tool_choice": allowed("required")}, "tool_choice"),
        ({"tools": [TIME], "tool_choice": named("weather")}, "tool_choice"),
        ({"tools": [TIME], "tool_choice": allowed("auto", "weather")}, "tool_choice"),
        ({"tools": [TIME], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": [TIME], "tool_choice": {"type": "function"}}, "tool_choice"),
        (
            {"tools": [TIME], "tool_choice": allowed("none", "time")},
            "tool_choice.allowed_tools.mode",
        ),
        ({"tools": [TIME, TIME]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [TIME, named("")]}, "tools[1].function.name"),
        ({"tools": [named("a b")]}, "tools[0].function.name"),
        ({"tools": [named("x" * 129)]}, "tools[0].function.name"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"logit_bias": {"the": 1}}, "logit_bias"),
        ({"logit_bias": {"-1": 1}}, "logit_bias"),
        ({"logit_bias": {"5": 101}}, "logit_bias"),
        ({"reasoning_effort": "maximal"}, "reasoning_effort"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
        ),
        ({"response_format": {"type": "grammar"}}, "response_format.definition"),
        (
            {"response_format": {"type": "grammar", "definition": "x", "syntax": "gbnf"}},
            "response_format.syntax",
        ),
    ],
)
def test_what_makes_no_sense_is_named(fields, param):
    found, message = problem(**fields)
    assert found == param
    assert param.split(".")[0] in message


SCHEMA = {"type": "object"}
PLACE = "response_format.definition"


@pytest.mark.parametrize(
    ("given", "grammar"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, JsonObject()),
        (
            {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}},
            JsonSchema(SCHEMA, "response_format.json_schema.schema"),
        ),
        (
            {"type": "json_schema", "schema": SCHEMA},
            JsonSchema(SCHEMA, "response_format.schema"),
        ),
        (
            {"type": "grammar", "syntax": "lark", "definition": "start: A"},
            Lark("start: A", "response_format.definition"),
        ),
        (
            {"type": "grammar", "syntax": "regex", "definition": "a+"},
            Regex("a+", "response_format.definition"),
        ),
    ],
)
def test_response_format(given, grammar):
    assert asked(response_format=given).grammar == grammar


@pytest.mark.parametrize(
    ("effort", "level"),
    [("none", "low"), ("minimal", "low"), ("medium", "medium"), ("max", "high"), ("auto", None)],
)
def test_effort_is_served_by_the_nearest_level_and_never_switches_thinking_off(effort, level):
    prompt = asked(reasoning_effort=effort).prompt
    assert isinstance(prompt, Conversation)
    assert (prompt.effort, prompt.template_kwargs) == (level, {})
