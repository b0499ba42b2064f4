"""A random model made to call functions: every dialect, from the template to the events.

The model knows nothing, so whatever is right about its calls is the grammar's doing.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mtplx_engine import (
    Calling,
    ChatRequest,
    ChatResult,
    Conversation,
    Engine,
    EngineOptions,
    InvalidRequest,
    JsonObject,
    JsonSchema,
    Limits,
    Message,
    Sampling,
    Tool,
    tiny,
)
from mtplx_engine.chat.dialects.base import Dialect
from mtplx_engine.chat.dialects.registry import DIALECTS
from mtplx_engine.tiny import write_tiny_model

ROOM = 16
THINK, END_OF_THOUGHTS = 258, 259

WEATHER = Tool(
    "get_weather",
    "The weather.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "enum": ["Rome", "Oslo"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
            "exact": {"type": "boolean"},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)
NOW = Tool("now")
HI = (Message("user", "What is the weather in Rome?"),)
REQUIRED = Calling("required", parallel=False)
YES = JsonSchema({"enum": ["yes", "no"]})


def is_valid(name: str, arguments: dict[str, Any]) -> bool:
    if name == "now":
        return arguments == {}
    known = {"city": ("Rome", "Oslo"), "days": range(1, 10), "exact": (True, False)}
    return {"city", "days"} <= arguments.keys() <= known.keys() and all(
        value in known[key] for key, value in arguments.items()
    )


def write_speaker(folder: Path, dialect: Dialect, *, special: bool) -> Path:
    """A tiny model whose chat template shows tools and bears the marks of a dialect."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tiny._ATTENTION, "vocab_size", tiny.VOCABULARY + ROOM)
        write_tiny_model(folder, "llama")
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    signature = " ".join(dialect.signature)
    settings["chat_template"] = (
        "{# "
        + signature
        + " #}{% if tools %}{{ tools | tojson }}{% endif %}"
        + settings["chat_template"]
    )
    path.write_text(json.dumps(settings))
    if special:
        path = folder / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        added = tokenizer["added_tokens"]
        first = 1 + max(token["id"] for token in added)
        marks = [mark for mark in (*dialect.openers, *dialect.marks) if len(mark) > 1]
        for at, mark in enumerate(dict.fromkeys(marks)):
            added.append(added[0] | {"id": first + at, "content": mark, "special": True})
        assert len(marks) < ROOM
        path.write_text(json.dumps(tokenizer))
    return folder


# Each dialect with marks that are tokens, as they are in real models, and some with plain text.
SPEAKERS = [(each, True) for each in DIALECTS] + [
    (each, False) for each in DIALECTS if each.name in ("json_object", "qwen_xml", "deepseek_v3")
]


@pytest.fixture(
    scope="module",
    params=SPEAKERS,
    ids=lambda each: f"{each[0].name}-{'tokens' if each[1] else 'text'}",
)
def speaker(request, tmp_path_factory) -> Iterator[Engine]:
    dialect, special = request.param
    folder = tmp_path_factory.mktemp("speakers") / dialect.name
    write_speaker(folder, dialect, special=special)
    with Engine.open(EngineOptions(model=str(folder), mtp="on")) as engine:
        assert engine.model.tool_dialect == dialect.name
        assert engine.model.knows_tools
        yield engine


def ask(
    engine: Engine,
    tools: tuple[Tool, ...],
    calling: Calling,
    *,
    seed: int = 0,
    depth: int | None = None,
    **fields: Any,
) -> ChatResult:
    return engine.submit(
        ChatRequest(
            Conversation(HI, tools=tools),
            # A random model that may think thinks for long.
            Sampling(temperature=1.0, seed=seed, logit_bias={THINK: -100.0}),
            Limits(500),
            depth,
            calling=calling,
            **fields,
        )
    ).result()


def test_a_required_call_is_made(speaker):
    for seed in range(2):
        result = ask(speaker, (WEATHER, NOW), REQUIRED, seed=seed)
        assert result.finished.reason == "tool_calls", result
        (call,) = result.calls
        assert call.complete
        assert is_valid(call.name, json.loads(call.arguments)), call
        assert result.text == ""


def test_the_named_function_is_called(speaker):
    result = ask(speaker, (WEATHER, NOW), Calling("required", ("now",), parallel=False))
    assert [(call.name, json.loads(call.arguments)) for call in result.calls] == [("now", {})]


def test_several_calls_may_be_required(speaker):
    for seed in range(2):
        result = ask(speaker, (WEATHER, NOW), Calling("required"), seed=seed)
        whole = [call for call in result.calls if call.complete]
        assert whole
        assert all(is_valid(call.name, json.loads(call.arguments)) for call in whole)
        assert whole == list(result.calls) or result.finished.reason == "length"


def test_the_depth_does_not_show_in_a_forced_call(speaker):
    plain, drafted = (ask(speaker, (WEATHER,), REQUIRED, seed=5, depth=each) for each in (0, 3))
    assert plain.calls == drafted.calls
    assert plain.finished.usage == drafted.finished.usage


def test_no_call_is_made_where_none_may_be(speaker):
    result = ask(speaker, (WEATHER,), Calling("none"))
    assert result.calls == ()
    assert result.text


def test_an_answer_in_a_form_or_a_call(speaker):
    seen = set()
    for seed in range(4):
        result = ask(speaker, (WEATHER,), Calling(parallel=False), seed=seed, grammar=YES)
        if result.calls:
            assert result.finished.reason == "tool_calls"
            assert is_valid(result.calls[0].name, json.loads(result.calls[0].arguments))
        else:
            assert json.loads(result.text) in ("yes", "no")
        seen.add(bool(result.calls))
    assert seen


def test_a_form_without_calls(speaker):
    result = ask(speaker, (WEATHER,), Calling("none"), grammar=YES)
    assert json.loads(result.text) in ("yes", "no")


def test_strict_calls_amid_text(speaker):
    strict = Tool(WEATHER.name, None, WEATHER.parameters, strict=True)
    if any(each.bare for each in DIALECTS if each.name == speaker.model.tool_dialect):
        with pytest.raises(InvalidRequest, match="required"):
            ask(speaker, (strict,), Calling())
        return
    result = ask(speaker, (strict,), Calling())
    assert all(
        is_valid(call.name, json.loads(call.arguments)) for call in result.calls if call.complete
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Iterator[Engine]:
    folder = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny", "qwen3_5")
    with Engine.open(EngineOptions(model=str(folder), mtp="on")) as engine:
        yield engine


def test_a_template_without_tools_is_helped_out(plain):
    assert not plain.model.knows_tools
    result = ask(plain, (WEATHER,), REQUIRED)
    assert is_valid(result.calls[0].name, json.loads(result.calls[0].arguments))
    told = plain.submit(
        ChatRequest(Conversation(HI, tools=(WEATHER,)), limits=Limits(1), echo=True)
    )
    text = told.result().echo.text
    assert "get_weather" in text
    assert '"enum": ["Rome", "Oslo"]' in text


def test_thoughts_come_before_a_forced_call(plain):
    thinks = Sampling(temperature=1.0, seed=1, logit_bias={THINK: 50.0, END_OF_THOUGHTS: 4.0})
    result = plain.submit(
        ChatRequest(Conversation(HI, tools=(WEATHER,)), thinks, Limits(4000), calling=REQUIRED)
    ).result()
    assert result.finished.usage.reasoning_tokens > 0
    assert is_valid(result.calls[0].name, json.loads(result.calls[0].arguments))


def test_thoughts_come_before_json(plain):
    thinks = Sampling(temperature=1.0, seed=1, logit_bias={THINK: 50.0, END_OF_THOUGHTS: 4.0})
    for grammar in (YES, JsonObject()):
        result = plain.submit(
            ChatRequest(Conversation(HI), thinks, Limits(4000), grammar=grammar)
        ).result()
        assert result.finished.usage.reasoning_tokens > 0
        if result.finished.reason == "stop":
            json.loads(result.text)
