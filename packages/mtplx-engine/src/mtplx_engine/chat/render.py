"""Messages to the text that the model reads, by the model's own chat template."""

import inspect
import itertools
from typing import Any

from transformers import PreTrainedTokenizerBase

from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import Conversation, Message

# What a request may pass are variables of the model's template, not a template of its own, nor what
# `apply_chat_template` itself takes.
_RESERVED = {"messages"} | set(
    inspect.signature(PreTrainedTokenizerBase.apply_chat_template).parameters
)


def render(conversation: Conversation, tokenizer: Any) -> str:
    """Render a conversation up to the point where the model's answer begins.

    Args:
        conversation: What was said.
        tokenizer: mlx-lm's tokenizer wrapper.

    Raises:
        InvalidRequest: The model has no chat template, or the template refuses these messages.
    """
    reserved = sorted(_RESERVED & conversation.template_kwargs.keys())
    if reserved:
        name = f"chat_template_kwargs.{reserved[0]}"
        raise InvalidRequest(f"{name} is not a variable that a request may set.", name)
    if not tokenizer.has_chat_template:
        raise InvalidRequest(
            "This model has no chat template, so it cannot answer messages. Send raw text.",
            "messages",
        )
    try:
        text: str = tokenizer.apply_chat_template(
            [_as_template_message(message) for message in _join_system(conversation.messages)],
            add_generation_prompt=True,
            tokenize=False,
            **conversation.template_kwargs,
        )
    except Exception as error:  # a template is foreign code: it may raise anything
        raise InvalidRequest(
            f"The model's chat template refuses these messages: {error or repr(error)}", "messages"
        ) from error
    return text


def _join_system(messages: tuple[Message, ...]) -> list[Message]:
    """Join the system messages at the beginning: many templates refuse a second one."""
    leading = list(itertools.takewhile(lambda message: message.role == "system", messages))
    if len(leading) < 2:
        return list(messages)
    joined = Message("system", "\n\n".join(message.text for message in leading))
    return [joined, *messages[len(leading) :]]


def _as_template_message(message: Message) -> dict[str, str]:
    fields = {"role": message.role, "content": message.text}
    if message.reasoning is not None:
        fields["reasoning_content"] = message.reasoning
    return fields
