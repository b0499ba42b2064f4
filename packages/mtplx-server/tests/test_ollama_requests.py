"""Ollama's bodies: what the engine is asked for, and what becomes of every other field."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mtplx_client.wire.ollama import OllamaChatRequest, OllamaGenerateRequest
from mtplx_engine.constraint import JsonObject, JsonSchema
from mtplx_engine.conversation import Conversation, Message, RawText
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import ChatRequest, Limits, Sampling
from mtplx_engine.testing import SCRIPTED_MODEL
from mtplx_engine.tools import Tool, ToolCall
from mtplx_server.errors import RequestRefused, problem_of
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.ollama import decode
from mtplx_server.protocols.ollama.encode import AnswerEncoder
from mtplx_server.protocols.ollama.fields import CHAT, GENERATE, OPTIONS

HI = {"role": "user", "content": "hi"}
SERVED = Served(SCRIPTED_MODEL)
DOCS = Path(__file__).parents[3] / "docs/protocols/ollama.md"
TABLES = {"chat": CHAT, "generate": GENERATE, "options": OPTIONS}


def chat(served: Served = SERVED, **fields: Any) -> Decoded:
    body = OllamaChatRequest.model_validate({"messages": [HI], **fields})
    return decode.chat(body, served, "req_1")


def generate(served: Served = SERVED, **fields: Any) -> Decoded:
    body = OllamaGenerateRequest.model_validate({"prompt": "Once", **fields})
    return decode.generate(body, served, "req_1")


def asked(decoded: Decoded) -> ChatRequest:
    (request,) = decoded.requests
    return request


def ignored(decoded: Decoded) -> list[str]:
    assert isinstance(decoded.encoder, AnswerEncoder)
    return decoded.encoder.asked.ignored_fields


def knowing(*variables: str, efforts: tuple[str, ...] = ()) -> Served:
    model = replace(SCRIPTED_MODEL, efforts=efforts, template_variables=frozenset(variables))
    return Served(model)


def option(**options: Any) -> ChatRequest:
    return asked(chat(options=options))


def history(*messages: dict[str, Any]) -> tuple[Message, ...]:
    prompt = asked(chat(messages=list(messages))).prompt
    assert isinstance(prompt, Conversation)
    return prompt.messages


def test_a_bare_request_leaves_all_to_the_model_and_streams():
    decoded = chat()
    assert decoded.requests == (ChatRequest(Conversation((Message("user", "hi"),))),)
    assert (decoded.choices, decoded.stream) == (1, True)
    nulls = chat(**dict.fromkeys(set(CHAT.fields) - {"messages"}), unheard_of=None)
    assert (nulls.requests, nulls.stream, ignored(nulls)) == (decoded.requests, True, [])
    assert chat(stream=False).stream is False


def test_every_honoured_option_arrives():
    request = option(
        num_predict=9,
        temperature=1,
        top_k=40,
        top_p=0.5,
        min_p=0.1,
        seed=0,
        stop=["a", "b"],
        repeat_penalty=1.5,
        repeat_last_n=64,
        presence_penalty=-1,
        frequency_penalty=0.5,
        logit_bias={"7": -100},
        top_n_sigma=2,
        xtc_probability=0.5,
        xtc_threshold=0.2,
        min_tokens=2,
        stop_token_ids=[3],
        ignore_eos=True,
        depth=3,
        acceptance="coupled",
        copy_lane=False,
    )
    assert request == ChatRequest(
        Conversation((Message("user", "hi"),)),
        Sampling(
            logit_bias={7: -100.0},
            repetition_penalty=1.5,
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
            seed=0,
        ),
        Limits(max_tokens=9, min_tokens=2, stop=("a", "b"), stop_token_ids=(3,), ignore_eos=True),
        depth=3,
        acceptance="coupled",
        copy_lane=False,
    )


@pytest.mark.parametrize("most", [-2, -1, 0])
def test_no_limit(most):
    assert option(num_predict=most).limits.max_tokens is None


def test_the_words_for_penalties_and_seeds():
    assert option(seed=-1).sampling.seed is None
    assert option(stop="END").limits.stop == ("END",)
    assert option(repeat_last_n=-1, penalty_window=3).sampling.penalty_window is None
    assert option(penalty_window=3, repetition_penalty=1.5).sampling == Sampling(
        penalty_window=3, repetition_penalty=1.5
    )
    off = {"repeat_penalty": 1.5, "presence_penalty": 1.0, "frequency_penalty": 1.0}
    assert option(repeat_last_n=0, **off).sampling == Sampling(
        repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0
    )


def test_options_without_effect_are_named():
    options = {"mirostat": 2, "num_gpu": 3, "colour": "red", "num_ctx": 5000, "num_keep": 4}
    found = ignored(chat(options=options, truncate=True, keep_alive="5m", shade=1))
    assert sorted(found) == [
        "options.colour",
        "options.mirostat",
        "options.num_ctx",
        "options.num_gpu",
        "shade",
        "truncate",
    ]
    assert ignored(chat(options={"num_ctx": 4096})) == []
    with pytest.raises(RequestRefused, match=r"options\.colour"):
        chat(replace(SERVED, strict_fields=True), options={"colour": "red"})


@pytest.mark.parametrize(("name", "table"), TABLES.items())
def test_neutral_values_are_accepted(name, table):
    for each in table.fields.values():
        for value in each.neutral:
            if name == "options":
                assert ignored(chat(options={each.name: value})) == []
            else:
                read = chat if name == "chat" else generate
                assert ignored(read(**{each.name: value})) == []


@pytest.mark.parametrize("name", [f.name for f in GENERATE.fields.values() if f.neutral])
def test_what_cannot_be_done_is_refused_by_name(name):
    if GENERATE.fields[name].treatment != "refused":
        assert ignored(generate(**{name: "x"})) == [name]
        return
    with pytest.raises(RequestRefused, match=name):
        generate(**{name: ["x"]})


@pytest.mark.parametrize("think", [True, False])
def test_thinking_is_a_variable_of_the_template(think):
    for served in (SERVED, knowing("enable_thinking")):
        for decoded in (chat(served, think=think), generate(served, think=think)):
            prompt = asked(decoded).prompt
            assert isinstance(prompt, Conversation)
            assert (prompt.template_kwargs, prompt.effort) == ({"enable_thinking": think}, None)
            assert ignored(decoded) == []


@pytest.mark.parametrize(
    ("served", "think", "named"),
    [
        (knowing(), True, True),
        (knowing(), False, False),  # it never does
        (knowing(efforts=("low",)), True, False),  # it always does
        (knowing(efforts=("low",)), False, True),
        (knowing(), "high", True),
        (knowing("enable_thinking"), "high", True),
    ],
)
def test_thinking_that_cannot_be_had_is_named(served, think, named):
    decoded = chat(served, think=think)
    assert ignored(decoded) == (["think"] if named else [])
    prompt = asked(decoded).prompt
    assert isinstance(prompt, Conversation)
    assert (prompt.template_kwargs, prompt.effort) == ({}, None)


def test_levels_of_thinking():
    prompt = asked(chat(think="max")).prompt
    assert isinstance(prompt, Conversation)
    assert (prompt.template_kwargs, prompt.effort) == ({}, "high")
    with pytest.raises(InvalidRequest, match="think must be one of"):
        chat(knowing(), think="hard")


def test_forms():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert asked(chat(format="json")).grammar == JsonObject()
    assert asked(generate(format=schema)).grammar == JsonSchema(schema, "format")
    assert asked(chat(format="")).grammar is None
    with pytest.raises(RequestRefused, match="format must be"):
        chat(format="xml")


def test_scores():
    assert asked(chat(logprobs=True)).logprobs == 0
    assert asked(generate(logprobs=True, top_logprobs=20)).logprobs == 20
    for fields in ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 21}):
        with pytest.raises(RequestRefused, match="top_logprobs"):
            chat(**fields)


def called(name: str, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": {"at": "東京"}}, **more}


def test_results_find_their_calls_by_id_or_name_or_order():
    calls = [called("a"), called("b"), called("b"), called("c", id="mine")]
    made = history(
        HI,
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": calls},
        {"role": "tool", "content": "c", "tool_call_id": "mine"},
        {"role": "tool", "content": "b1", "tool_name": "b"},
        {"role": "tool", "content": "a", "tool_name": "something else"},
        {"role": "tool", "content": "b2"},
        {"role": "assistant", "content": "ok", "thinking": ""},
    )
    arguments = json.dumps({"at": "東京"}, ensure_ascii=False)
    ids = ["call_1_0", "call_1_1", "call_1_2", "mine"]
    assert made[1] == Message(
        "assistant",
        "",
        "hm",
        tuple(ToolCall(n, arguments, i) for n, i in zip("abbc", ids, strict=True)),
    )
    answered = [each.call_id for each in made[2:6]]
    assert answered == ["mine", "call_1_1", "call_1_0", "call_1_2"]
    assert made[6] == Message("assistant", "ok")


def test_ids_that_only_results_have_are_read_over():
    made = history(
        HI,
        {"role": "assistant", "tool_calls": [called("a"), called("b")]},
        {"role": "tool", "content": "b", "tool_call_id": "lost", "tool_name": "b"},
        {"role": "tool", "content": "a", "tool_call_id": "found"},
    )
    assert [each.call_id for each in made[2:]] == ["call_1_1", "call_1_0"]


def test_a_call_has_one_result():
    call = {"role": "assistant", "tool_calls": [called("a", id="x")]}
    result = {"role": "tool", "content": "5", "tool_call_id": "x"}
    with pytest.raises(InvalidRequest, match="has its result already"):
        chat(messages=[HI, call, result, result])


def test_a_result_without_a_call():
    assert history(HI, {"role": "tool", "content": "5"})[1] == Message("tool", "5")
    with pytest.raises(InvalidRequest, match="no call before it has that id"):
        chat(messages=[HI, {"role": "tool", "content": "5", "tool_call_id": "x"}])


def test_an_answer_of_ours_can_be_sent_back_as_history():
    call = {"id": "call_9", "function": {"index": 0, "name": "a", "arguments": {}}}
    answer = {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call]}
    assert ignored(chat(messages=[HI, answer, HI])) == []


def test_fields_without_effect_inside_messages_and_tools_are_named():
    calls = [called("a", colour=1) | {"type": "function"}]
    calls[0]["function"]["shade"] = 1
    decoded = chat(
        messages=[
            {**HI, "thinking": "hm", "tool_calls": [], "images": [], "name": "Ada"},
            {**HI, "tool_name": "x"},
            {"role": "assistant", "tool_calls": calls},
        ],
        tools=[{"type": "function", "function": {"name": "a", "strict": True}, "cache": 1}],
    )
    assert ignored(decoded) == [
        "messages[].name",
        "messages[].thinking",
        "messages[].tool_name",
        "messages[].tool_calls[].function.shade",
        "messages[].tool_calls[].colour",
        "tools[].cache",
        "tools[].function.strict",
    ]


def test_tools():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": "weather", "description": "Tells it.", "parameters": schema}
    prompt = asked(chat(tools=[{"type": "function", "function": function}])).prompt
    assert isinstance(prompt, Conversation)
    assert prompt.tools == (Tool("weather", "Tells it.", schema),)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [{"role": "user", "content": "a", "images": ["x"]}]}, "messages[0].images"),
        ({"messages": [HI, {"role": "developer", "content": "a"}]}, "messages[1].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"tools": [{"type": "code"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"options": {"repeat_last_n": -2}}, "options.repeat_last_n"),
        ({"options": {"temperature": 3}}, "options.temperature"),
    ],
)
def test_what_makes_no_sense_is_named(fields, param):
    with pytest.raises((RequestRefused, InvalidRequest)) as caught:
        chat(**fields)
    problem = problem_of(caught.value)
    assert (problem.status, problem.param) == (400, param)


def test_arguments_in_the_history_are_an_object():
    call = {"function": {"name": "a", "arguments": "{}"}}
    with pytest.raises(ValidationError, match="dictionary"):
        chat(messages=[{"role": "assistant", "tool_calls": [call]}])


def test_a_prompt_is_a_conversation_unless_it_is_raw():
    said = (Message("system", "Be brief."), Message("user", "Once"))
    assert asked(generate(system="Be brief.")).prompt == Conversation(said)
    assert asked(generate(system="")).prompt == Conversation(said[1:])
    assert asked(generate(raw=True, system="")).prompt == RawText("Once")
    assert ignored(generate(raw=True, think=False)) == ["think"]
    with pytest.raises(RequestRefused, match="system must be empty"):
        generate(raw=True, system="Be brief.")


def test_names_may_have_a_tag():
    strict = replace(SERVED, strict_model=True)
    for name in (None, "org/scripted", "org/scripted:latest"):
        chat(strict, model=name)
        generate(strict, model=name)
    with pytest.raises(RequestRefused, match="'llama' does not exist"):
        chat(strict, model="llama:latest")
    chat(model="llama")


@pytest.mark.parametrize(("name", "table"), TABLES.items())
def test_the_documented_tables_are_current(name, table, golden_part):
    golden_part(DOCS, name, table.markdown())
