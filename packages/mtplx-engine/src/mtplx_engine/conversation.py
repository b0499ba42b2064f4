"""What a model reads: a conversation, raw text or tokens. Plain values: no MLX, no HTTP."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mtplx_engine.errors import InvalidRequest
from mtplx_engine.tools import Tool, ToolCall

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Attributes:
        role: Who speaks; `tool` brings the result of a call.
        text: What was said.
        reasoning: What an assistant thought before it spoke, for templates that replay it.
        calls: Functions that an assistant called.
        call_id: Id of the call whose result this is; None where results come in order.
    """

    role: Role
    text: str
    reasoning: str | None = None
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that the model's chat template renders.

    Attributes:
        messages: At least one, in order.
        template_kwargs: Extra variables for the template, for example `enable_thinking`.
        tools: Functions that the model is told of.
        effort: How much to think, one of `effort.LEVELS`; None leaves it to the model.
    """

    messages: tuple[Message, ...]
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    effort: str | None = None

    def __post_init__(self) -> None:
        if not self.messages:
            raise InvalidRequest("messages must hold at least one message.", "messages")
        _check_results(self.messages)


def _check_results(messages: tuple[Message, ...]) -> None:
    """See that each result belongs to a call that was made and has no result yet.

    Ids count only until the next calls: some clients begin anew with every answer.
    """
    made: set[str] = set()
    answered: set[str] = set()
    for at, message in enumerate(messages):
        ids = Counter(call.id for call in message.calls if call.id is not None)
        for call_id, count in ids.items():
            if count > 1:
                text = f"{count} calls have the id {call_id[:200]!r}."
                raise InvalidRequest(text, f"messages[{at}].tool_calls")
        made |= ids.keys()
        answered -= ids.keys()
        if message.call_id is None:
            continue
        path = f"messages[{at}].tool_call_id"
        if message.call_id not in made:
            text = f"{path} is {message.call_id!r}, but no call before it has that id."
            raise InvalidRequest(text, path)
        if message.call_id in answered:
            text = f"{path} is {message.call_id!r}, a call that has its result already."
            raise InvalidRequest(text, path)
        answered.add(message.call_id)


@dataclass(frozen=True, slots=True)
class RawText:
    """Text that is tokenised as it stands, without a chat template."""

    text: str


@dataclass(frozen=True, slots=True)
class TokenIds:
    """A prompt that is already tokenised."""

    ids: tuple[int, ...]


Prompt = Conversation | RawText | TokenIds
