"""What the engine is asked for, given a body; and what becomes of every other field."""

from dataclasses import replace
from pathlib import Path

import pytest
from chat_reading import (
    HI,
    PLAIN,
    TIME,
    WEATHER,
    asked,
    conversation,
    ignored,
    read,
)
from openai.types.chat import completion_create_params

from mtplx_client.wire.chat import ChatCompletionRequest
from mtplx_client.wire.usage import Report
from mtplx_engine.constraint import JsonObject
from mtplx_engine.conversation import Conversation, Message
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import ChatRequest, Limits, Sampling
from mtplx_engine.testing import SCRIPTED_MODEL
from mtplx_engine.tools import Calling, Tool
from mtplx_server.errors import RequestRefused
from mtplx_server.protocols.base import Served
from mtplx_server.protocols.openai_chat.fields import TABLE
from mtplx_server.protocols.wire_docs import described

FIELDS = TABLE.fields
DOCS = Path(__file__).parents[3] / "docs/protocols/openai-chat.md"


def test_a_bare_request_leaves_all_to_the_model():
    decoded = read()
    assert decoded.requests == (ChatRequest(Conversation((Message("user", "hi"),))),)
    assert decoded.choices == 1
    assert decoded.stream is False
    nulls = dict.fromkeys(set(FIELDS) - {"messages"})
    assert read(**nulls).requests == decoded.requests
    assert ignored(**nulls, unheard_of=None) == []


ALL_SAMPLING = Sampling(
    logit_bias={7: -100.0, 11: 0.5},
    repetition_penalty=1.1,
    presence_penalty=-1.0,
    frequency_penalty=0.5,
    penalty_window=64,
    top_n_sigma=2.0,
    temperature=1.0,
    top_k=40,
    top_p=0.5,
    min_p=0.1,
    xtc_probability=0.5,
    xtc_threshold=0.2,
    seed=-7,
)


def test_every_honoured_field_arrives():
    decoded = read(
        temperature=1,
        top_p=0.5,
        top_k=40,
        min_p=0.1,
        top_n_sigma=2,
        xtc_probability=0.5,
        xtc_threshold=0.2,
        presence_penalty=-1,
        frequency_penalty=0.5,
        repetition_penalty=1.1,
        penalty_window=64,
        logit_bias={"7": -100, "11": 0.5},
        seed=-7,
        max_tokens=5,
        min_tokens=2,
        ignore_eos=True,
        stop=["a", "b"],
        stop_token_ids=[3],
        chat_template_kwargs={"enable_thinking": False},
        reasoning_effort="xhigh",
        depth=3,
        acceptance="coupled",
        copy_lane=False,
        logprobs=True,
        top_logprobs=4,
        response_format={"type": "json_object"},
        tools=[WEATHER],
        tool_choice="none",
        parallel_tool_calls=False,
        n=3,
    )
    tool = Tool("weather", parameters={"type": "object"})
    assert decoded.choices == 3
    assert decoded.requests == (
        ChatRequest(
            Conversation(
                (Message("user", "hi"),), {"enable_thinking": False}, (tool,), effort="high"
            ),
            ALL_SAMPLING,
            Limits(
                max_tokens=5, min_tokens=2, stop=("a", "b"), stop_token_ids=(3,), ignore_eos=True
            ),
            depth=3,
            acceptance="coupled",
            copy_lane=False,
            logprobs=4,
            grammar=JsonObject(),
            calling=Calling("none", parallel=False),
        ),
    )


def test_the_newer_name_of_the_token_limit_wins():
    assert asked(max_tokens=5, max_completion_tokens=9).limits.max_tokens == 9
    with pytest.raises(InvalidRequest, match="max_completion_tokens must be") as caught:
        read(max_tokens=5, max_completion_tokens=0)
    assert caught.value.param == "max_completion_tokens"


def test_one_stop_string_is_a_list_of_one():
    assert asked(stop="END").limits.stop == ("END",)


@pytest.mark.parametrize(
    ("fields", "depth"),
    [
        ({}, None),
        ({"depth": 0}, 0),
        ({"generation_mode": "ar"}, 0),
        ({"generation_mode": "ar", "depth": 0}, 0),
        ({"generation_mode": "mtp"}, 2),
        ({"generation_mode": "mtp", "depth": 1}, 1),
    ],
)
def test_mode_and_depth(fields, depth):
    assert asked(**fields).depth == depth


def test_drafting_without_a_head_is_refused_with_the_reason():
    plain = replace(
        SCRIPTED_MODEL,
        mtp=False,
        mtp_reason="off, because the model has no MTP head",
        default_depth=0,
        max_depth=0,
    )
    with pytest.raises(InvalidRequest, match="has no MTP head"):
        read(Served(plain), generation_mode="mtp")
    assert asked(Served(plain), generation_mode="ar").depth == 0


def test_messages_keep_their_order_and_words():
    assert conversation(
        {"role": "developer", "content": "Be brief."},
        HI,
        {"role": "assistant", "content": None, "reasoning": "hm"},
        {"role": "system", "content": ""},
        {"role": "assistant", "content": "x", "reasoning": "old", "reasoning_content": "new"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ) == (
        Message("system", "Be brief."),
        Message("user", "hi"),
        Message("assistant", "", reasoning="hm"),
        Message("system", ""),
        Message("assistant", "x", reasoning="new"),
        Message("user", "a\nb"),
    )


def test_ignored_fields_are_named_wherever_they_are():
    found = ignored(
        PLAIN,
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"x": 1}}]},
            {"role": "user", "content": "b", "name": "Ada", "reasoning_content": "hm"},
            {"role": "user", "content": "c", "name": "Bob", "tool_calls": []},
        ],
        tools=[{**TIME, "cache": 1}],
        stream_options={"include_usage": True, "include_obfuscation": True},
        reasoning_effort="high",
        store=True,
        colour="red",
        user="me",
    )
    assert sorted(found) == [
        "colour",
        "messages[].content[].cache_control",
        "messages[].name",
        "messages[].reasoning_content",
        "messages[].tool_calls",
        "reasoning_effort",
        "store",
        "stream_options.include_obfuscation",
        "tools[].cache",
    ]


def test_variables_that_the_template_does_not_know_are_named():
    knows = Served(replace(SCRIPTED_MODEL, template_variables=frozenset({"enable_thinking"})))
    variables = {"enable_thinking": False, "thinking": False}
    assert ignored(knows, chat_template_kwargs=variables) == ["chat_template_kwargs.thinking"]
    assert ignored(chat_template_kwargs=variables) == []


def test_an_answer_of_ours_can_be_sent_back_as_history():
    echoed = {"role": "assistant", "content": "x", "refusal": None, "tool_calls": [], "audio": None}
    assert ignored(messages=[HI, echoed, HI]) == []


REFUSED = [field for field in FIELDS.values() if field.treatment == "refused"]


@pytest.mark.parametrize("field", REFUSED, ids=lambda field: field.name)
def test_a_refused_field_is_refused_but_for_its_neutral_values(field):
    for value in ({"some": "thing"}, [1, 2], 0.25, "strange", True):
        with pytest.raises(RequestRefused, match=field.name) as caught:
            read(**{field.name: value})
        problem = caught.value.problem
        assert (problem.status, problem.param) == (400, field.name)
        assert problem.code == ("unsupported_value" if field.neutral else "unsupported_parameter")
    for value in field.neutral:
        assert ignored(**{field.name: value}) == []


def test_the_table_knows_every_field_of_the_openai_sdk():
    known = completion_create_params.CompletionCreateParamsNonStreaming.__annotations__
    assert set(known) <= set(FIELDS)
    assert len(known) > 30


def test_every_honoured_field_says_what_it_does():
    honoured = {field.name: field for field in FIELDS.values() if field.treatment == "honoured"}
    assert set(ChatCompletionRequest.model_fields) == set(honoured)
    assert all(field.note for field in honoured.values())


def test_the_documented_table_is_current(golden_part):
    golden_part(DOCS, "fields", TABLE.markdown())


def test_the_documented_report_is_current(golden_part):
    rows = [f"| `{name}` | {note} |" for name, note in described(Report).items()]
    assert len(rows) > 30
    golden_part(DOCS, "report", "\n".join(["| key | meaning |", "|---|---|", *rows]) + "\n")
