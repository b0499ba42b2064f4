"""A model's chat template: what it can express, how it is rendered, how answers to it are read."""

import contextlib
import inspect
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jinja2 import TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment
from transformers import PreTrainedTokenizerBase

from mtplx_engine.chat.dialects import json_object
from mtplx_engine.chat.dialects.registry import dialect_of
from mtplx_engine.chat.effort import levels_of, nearest
from mtplx_engine.chat.marks import Marks
from mtplx_engine.chat.parser import AnswerForm
from mtplx_engine.chat.reasoning import ReasoningStart, markers_of
from mtplx_engine.chat.tool_prompt import in_plain_words, tool_dict
from mtplx_engine.conversation import Conversation, Message
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.tools import Calling

# What a request may pass are variables of the model's template, not a template of its own, nor what
# `apply_chat_template` itself takes.
_RESERVED = {"messages"} | set(
    inspect.signature(PreTrainedTokenizerBase.apply_chat_template).parameters
)


class ChatTemplate:
    """One model's way of chatting.

    Attributes:
        marks: The tokenizer's.
        reasoning: The strings around thoughts; None where the model does not think.
        dialect: How the model writes calls.
        knows_tools: Whether the template shows tools; if not, they are explained in plain words.
        levels: Of effort, from little to much; none where the model has none.
        variables: Names that the template asks for; None where that is not known.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Read the template of mlx-lm's tokenizer wrapper."""
        source = _source(tokenizer)
        dialect = dialect_of(source) if "tools" in source else None
        self._tokenizer = tokenizer
        self.marks = Marks.of(tokenizer)
        self.reasoning = markers_of(source, self.marks.ids)
        self.knows_tools = dialect is not None
        self.dialect = dialect or json_object.DIALECT
        self.levels = levels_of(source)
        self.variables = _variables(source)

    def render(self, conversation: Conversation) -> str:
        """Render a conversation up to the point where the model's answer begins.

        Raises:
            InvalidRequest: The model has no chat template, or it refuses these messages.
        """
        return self._render(conversation, begin_answer=True)

    def _render(self, conversation: Conversation, *, begin_answer: bool) -> str:
        _check_variables(conversation)
        if not self._tokenizer.has_chat_template:
            raise InvalidRequest(
                "This model has no chat template, so it cannot answer messages. Send raw text.",
                "messages",
            )
        messages = _join_system(conversation.messages)
        variables = dict(conversation.template_kwargs)
        if self.levels and conversation.effort is not None:
            variables["reasoning_effort"] = nearest(conversation.effort, self.levels)
        if not self.knows_tools:
            messages = in_plain_words(messages, conversation.tools)
        elif conversation.tools:
            variables["tools"] = [tool_dict(tool) for tool in conversation.tools]
        try:
            text: str = self._tokenizer.apply_chat_template(
                [_message_dict(message) for message in messages],
                add_generation_prompt=begin_answer,
                tokenize=False,
                **variables,
            )
        except Exception as error:  # a template is foreign code: it may raise anything
            raise InvalidRequest(
                f"The model's chat template refuses these messages: {error or repr(error)}",
                "messages",
            ) from error
        return text

    def parts(self, conversation: Conversation) -> tuple[str, str]:
        """The beginning of a rendered conversation that it shares with others, and its tail.

        Returns:
            What comes before the first message that is not a system message, and what comes after
            the last message, to begin the answer. Empty where the template does not tell.
        """
        first = next((m for m in conversation.messages if m.role != "system"), None)
        whole = self.render(conversation)
        beginning = tail = ""
        with contextlib.suppress(InvalidRequest):  # templates may refuse what is not complete
            bare = self._render(conversation, begin_answer=False)
            tail = whole.removeprefix(bare) if bare and whole.startswith(bare) else ""
        if first is not None:
            system = [m for m in conversation.messages if m.role == "system"]
            with contextlib.suppress(InvalidRequest):
                other = _other_than(first.text)
                messages = (*system, Message("user", other))
                another = self.render(replace(conversation, messages=messages))
                pairs = itertools.takewhile(
                    lambda pair: pair[0] == pair[1], zip(whole, another, strict=False)
                )
                beginning = whole[: sum(1 for _ in pairs)]
        return beginning, tail

    def form(self, prompt: str, conversation: Conversation, calling: Calling) -> AnswerForm:
        """How the answer to a rendered prompt is to be read."""
        start, markers = None, self.reasoning
        if markers is not None:
            start = ReasoningStart(markers, markers.opened_by(prompt), markers.closed_by(prompt))
        may_call = bool(conversation.tools) and calling.mode != "none"
        return AnswerForm(
            reasoning=start,
            dialect=self.dialect if may_call or self.dialect.framed else None,
            tools=conversation.tools,
            parallel=calling.parallel,
        )

    def hidden(self, form: AnswerForm) -> frozenset[int]:
        """Special tokens that are no part of an answer's text."""
        shown: list[str] = []
        if form.reasoning is not None:
            shown += (form.reasoning.markers.opener, form.reasoning.markers.closer)
        if form.dialect is not None:
            shown += (*form.dialect.openers, *form.dialect.marks)
        return self.marks.hidden(shown)


def _other_than(text: str) -> str:
    """A message that differs in its first character."""
    return "B" if text.lstrip().startswith("A") else "A"


def _source(tokenizer: Any) -> str:
    """The template's text; of several the one for tools. Empty where it is not in Jinja."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, dict):
        template = template.get("tool_use") or template.get("default")
    return template if isinstance(template, str) else ""


def _variables(source: str) -> frozenset[str] | None:
    """The variables of a template in Jinja, without what it defines itself."""
    environment = ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])
    try:
        return frozenset(find_undeclared_variables(environment.parse(source))) if source else None
    except TemplateSyntaxError:  # tags of the tokenizer's own
        return None


def _check_variables(conversation: Conversation) -> None:
    reserved = sorted(_RESERVED & conversation.template_kwargs.keys())
    if reserved:
        name = f"chat_template_kwargs.{reserved[0]}"
        raise InvalidRequest(f"{name} is not a variable that a request may set.", name)


def _join_system(messages: Sequence[Message]) -> list[Message]:
    """Join the system messages at the beginning: many templates refuse a second one."""
    leading = list(itertools.takewhile(lambda message: message.role == "system", messages))
    if len(leading) < 2:
        return list(messages)
    joined = Message("system", "\n\n".join(message.text for message in leading))
    return [joined, *messages[len(leading) :]]


def _message_dict(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.reasoning is not None:
        fields["reasoning_content"] = message.reasoning
    if message.calls:
        fields["tool_calls"] = [
            {
                "id": call.id or f"call_{at}",
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments)},
            }
            for at, call in enumerate(message.calls)
        ]
    if message.call_id is not None:
        fields["tool_call_id"] = message.call_id
    return fields


def _arguments(text: str) -> Any:
    """Templates take the object; of a call that was cut there is only its text."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text
