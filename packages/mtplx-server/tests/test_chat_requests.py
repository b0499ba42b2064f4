"""What the engine is asked for, given a body; and what becomes of every other field."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai.types.chat import completion_create_params

from mtplx_client.wire.chat import ChatCompletionRequest
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import ChatRequest, Conversation, Limits, Message, Sampling
from mtplx_engine.testing import SCRIPTED_MODEL
from mtplx_server.errors import RequestRefused
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.openai_chat.decode import decode
from mtplx_server.protocols.openai_chat.fields import FIELDS, markdown_table

HI = {"role": "user", "content": "hi"}
SERVED = Served(SCRIPTED_MODEL)
DOCS = Path(__file__).parents[3] / "docs/protocols/openai-chat.md"


def read(served: Served = SERVED, **fields: Any) -> Decoded:
    body = ChatCompletionRequest.model_validate({"messages": [HI], **fields})
    return decode(body, served, "req_1")


def ignored(**fields: Any) -> list[str]:
    return read(**fields).encoder.ignored_fields


def conversation(*messages: dict[str, Any]) -> tuple[Message, ...]:
    prompt = read(messages=list(messages)).request.prompt
    assert isinstance(prompt, Conversation)
    return prompt.messages


def test_a_bare_request_leaves_all_to_the_model():
    decoded = read()
    assert decoded.request == ChatRequest(Conversation((Message("user", "hi"),)))
    assert decoded.stream is False
    nulls = dict.fromkeys(set(FIELDS) - {"messages"})
    assert read(**nulls).request == decoded.request
    assert ignored(**nulls, unheard_of=None) == []


def test_every_honoured_field_arrives():
    request = read(
        temperature=1,
        top_p=0.5,
        top_k=40,
        min_p=0.1,
        seed=-7,
        max_tokens=5,
        stop=["a", "b"],
        chat_template_kwargs={"enable_thinking": False},
        depth=3,
        acceptance="coupled",
        n=1,
    ).request
    assert request == ChatRequest(
        Conversation((Message("user", "hi"),), {"enable_thinking": False}),
        Sampling(temperature=1.0, top_k=40, top_p=0.5, min_p=0.1, seed=-7),
        Limits(max_tokens=5, stop=("a", "b")),
        depth=3,
        acceptance="coupled",
    )


def test_the_newer_name_of_the_token_limit_wins():
    assert read(max_tokens=5, max_completion_tokens=9).request.limits.max_tokens == 9
    with pytest.raises(InvalidRequest, match="max_completion_tokens must be") as caught:
        read(max_tokens=5, max_completion_tokens=0)
    assert caught.value.param == "max_completion_tokens"


def test_one_stop_string_is_a_list_of_one():
    assert read(stop="END").request.limits.stop == ("END",)


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
    assert read(**fields).request.depth == depth


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
    assert read(Served(plain), generation_mode="ar").request.depth == 0


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
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"x": 1}}]},
            {"role": "user", "content": "b", "name": "Ada", "reasoning_content": "hm"},
            {"role": "user", "content": "c", "name": "Bob"},
        ],
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
        "reasoning_effort",
        "store",
        "stream_options.include_obfuscation",
    ]


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


@pytest.mark.parametrize(("name", "value"), [("n", True), ("logprobs", 0), ("top_logprobs", False)])
def test_a_bool_is_not_a_number(name, value):
    with pytest.raises(RequestRefused):
        read(**{name: value})


def test_the_table_knows_every_field_of_the_openai_sdk():
    known = completion_create_params.CompletionCreateParamsNonStreaming.__annotations__
    assert set(known) <= set(FIELDS)
    assert len(known) > 30


def test_the_wire_model_declares_exactly_the_honoured_fields():
    honoured = {field.name for field in FIELDS.values() if field.treatment == "honoured"}
    assert set(ChatCompletionRequest.model_fields) == honoured


def test_the_documented_table_is_current():
    page = DOCS.read_text(encoding="utf-8")
    table = re.search(r"<!-- fields -->\n(.*?)<!-- /fields -->", page, re.DOTALL)
    assert table is not None
    assert table.group(1) == markdown_table()
