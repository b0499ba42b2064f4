"""Chat templates: histories with calls, what templates cannot show, levels, marks."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlx_lm.utils import load_tokenizer

from mtplx_engine import (
    Calling,
    Conversation,
    InvalidRequest,
    Message,
    Tool,
    ToolCall,
)
from mtplx_engine.chat.dialects.registry import DIALECTS
from mtplx_engine.chat.effort import LEVELS, levels_of, nearest
from mtplx_engine.chat.marks import Marks
from mtplx_engine.chat.template import ChatTemplate
from mtplx_engine.tiny import write_byte_tokenizer

Template = Callable[[str | None], ChatTemplate]

TURNS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls %}"
    "<tool_call>{{ c.function.name }} {{ c.function.arguments | tojson }}</tool_call>"
    "{% endfor %}<|im_end|>\n{% endfor %}"
)
OPEN = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
HERMES = "{% if tools %}{{ tools | tojson }}\n{% endif %}" + TURNS + OPEN

WEATHER = Tool("weather", "Of a city.", {"type": "object", "properties": {"city": {}}})
HISTORY = (
    Message("system", "Be brief."),
    Message("user", "Weather in Rome and Oslo?"),
    Message(
        "assistant",
        "I look.",
        calls=(
            ToolCall("weather", '{"city": "Rome"}', "a"),
            ToolCall("weather", '{"city": "Oslo"}', "b"),
        ),
    ),
    Message("tool", "warm", call_id="a"),
    Message("tool", "cold", call_id="b"),
    Message("assistant", "", calls=(ToolCall("weather", "{}", "c"),)),
    Message("tool", "?", call_id="c"),
)


@pytest.fixture
def template(tmp_path: Path) -> Template:
    def make(source: str | None) -> ChatTemplate:
        write_byte_tokenizer(tmp_path)
        if source is not None:
            path = tmp_path / "tokenizer_config.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": source}))
        return ChatTemplate(load_tokenizer(tmp_path))

    return make


def test_calls_and_results_reach_a_template_that_knows_them(template):
    hermes = template(HERMES)
    assert hermes.knows_tools
    assert hermes.render(Conversation(HISTORY, tools=(WEATHER,))) == (
        '[{"type": "function", "function": {"name": "weather", "description": "Of a city.",'
        ' "parameters": {"type": "object", "properties": {"city": {}}}}}]\n'
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nWeather in Rome and Oslo?<|im_end|>\n"
        '<|im_start|>assistant\nI look.<tool_call>weather {"city": "Rome"}</tool_call>'
        '<tool_call>weather {"city": "Oslo"}</tool_call><|im_end|>\n'
        "<|im_start|>tool\nwarm<|im_end|>\n"
        "<|im_start|>tool\ncold<|im_end|>\n"
        "<|im_start|>assistant\n<tool_call>weather {}</tool_call><|im_end|>\n"
        "<|im_start|>tool\n?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_a_template_without_tools_gets_them_in_plain_words(template):
    plain = template(None)
    assert not plain.knows_tools
    text = plain.render(Conversation(HISTORY, tools=(WEATHER,)))
    head, tail = text.split("<|im_end|>\n", 1)
    assert head.startswith("<|im_start|>system\nBe brief.\n\nYou can call functions.")
    assert head.endswith(
        '{"name": "weather", "description": "Of a city.",'
        ' "parameters": {"type": "object", "properties": {"city": {}}}}'
    )
    assert tail == (
        "<|im_start|>user\nWeather in Rome and Oslo?<|im_end|>\n"
        "<|im_start|>assistant\nI look.\n"
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\nwarm\n</tool_response>\n"
        "<tool_response>\ncold\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
        '<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n?\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("source", [None, HERMES])
def test_the_next_turn_begins_with_the_turn_before(template, source):
    """What was read once need not be read again."""
    chat = template(source)
    texts = [chat.render(Conversation(HISTORY[:count], tools=(WEATHER,))) for count in (2, 5, 7)]
    for before, after in itertools.pairwise(texts):
        assert after.startswith(before.removesuffix("<|im_start|>assistant\n"))


@pytest.mark.parametrize("mode", ["auto", "none", "required"])
def test_tool_choice_does_not_show_in_the_prompt(template, mode):
    conversation = Conversation(HISTORY[:2], tools=(WEATHER,))
    chat = template(HERMES)
    assert chat.render(conversation) == chat.render(Conversation(HISTORY[:2], tools=(WEATHER,)))
    form = chat.form("x", conversation, Calling(mode))
    assert (form.dialect is None) == (mode == "none")


def test_broken_arguments_are_a_template_s_problem_not_a_failure(template):
    broken = (Message("user", "x"), Message("assistant", "", calls=(ToolCall("f", '{"a": ', "a"),)))
    assert '"{\\"a\\": "' in template(HERMES).render(Conversation(broken))
    strict = HERMES.replace("c.function.arguments | tojson", "c.function.arguments.items()")
    with pytest.raises(InvalidRequest, match="refuses these messages"):
        template(strict).render(Conversation(broken))
    assert '"arguments": {"a": }' in template(None).render(Conversation(broken))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.name)
def test_a_dialect_is_told_by_its_template(template, dialect):
    signature = " ".join(dialect.signature)
    chat = template("{#" + signature + "#}" + HERMES.replace("tool_call", "called"))
    assert chat.knows_tools
    assert chat.dialect is dialect


def test_a_template_that_shows_tools_in_an_unknown_way_is_helped_out(template):
    chat = template(HERMES.replace("tool_call>", "strange>"))
    assert not chat.knows_tools
    assert "You can call functions." in chat.render(Conversation(HISTORY, tools=(WEATHER,)))


def test_the_variables_that_a_template_asks_for(template):
    chat = template("{% set x = 1 %}{% if enable_thinking %}{{ x }}{% endif %}" + HERMES)
    assert chat.variables == {"messages", "tools", "enable_thinking", "add_generation_prompt"}
    assert template("{% generation %}{% endgeneration %}").variables is None


LEVELLED = "{% if reasoning_effort == 'low' %}l{% elif reasoning_effort == 'xhigh' %}x{% endif %}"


@pytest.mark.parametrize(
    ("source", "levels"),
    [
        ("", ()),
        ("low high", ()),
        (LEVELLED, ("low", "xhigh")),
        ("Reasoning: {{ reasoning_effort }}", ("low", "medium", "high")),
    ],
)
def test_levels_are_those_of_the_template(source, levels):
    assert levels_of(source) == levels


def test_every_word_is_served_by_a_level_and_others_are_not():
    assert [nearest(word, ("low", "xhigh")) for word in LEVELS] == [
        *["low"] * 3,
        *["xhigh"] * 4,
    ]
    assert [nearest(word, ("medium", "high")) for word in LEVELS] == [
        *["medium"] * 4,
        *["high"] * 3,
    ]
    with pytest.raises(InvalidRequest, match="reasoning_effort"):
        nearest("much", ("low",))


def test_the_level_reaches_the_template(template):
    chat = template(LEVELLED + HERMES)
    texts = {
        effort: chat.render(Conversation((Message("user", "hi"),), effort=effort))[0]
        for effort in ("none", "medium", "max")
    }
    assert texts == {"none": "l", "medium": "x", "max": "x"}


@pytest.mark.parametrize(
    ("opening", "is_open", "is_closed"),
    [("", False, False), ("<think>\n", True, False), ("<think>\n\n</think>\n\n", False, True)],
)
def test_where_thoughts_begin_is_seen_at_the_end_of_the_prompt(
    template, opening, is_open, is_closed
):
    chat = template(TURNS + OPEN.replace("assistant\n", f"assistant\n{opening}"))
    quoted = Message("user", "Write <think></think> around thoughts, and <think> before.")
    conversation = Conversation((quoted,))
    start = chat.form(chat.render(conversation), conversation, Calling()).reasoning
    assert start is not None
    assert (start.is_open, start.is_closed) == (is_open, is_closed)


def test_marks_are_spelled_as_tokens_and_hidden_unless_shown():
    ids: dict[str, Any] = {"<a>": 7, "<a>b": 8, "[C]": 9, "<plain>": 10}
    marks = Marks(ids, frozenset({"<a>", "<a>b", "[C]"}))
    assert marks.spell('x"<a>by[C]') == '"x\\"" <[8]> "y" <[9]>'
    assert marks.spell("") == ""
    assert marks.hidden(()) == {7, 8, 9}
    assert marks.hidden(("[C]", "say <a>")) == {8}
    assert (marks.is_token("<a>"), marks.is_token("<b>")) == (True, False)
