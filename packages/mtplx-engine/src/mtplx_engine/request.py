"""What a caller asks of the engine. Plain values: this module knows neither MLX nor HTTP.

Every protocol decodes into one `ChatRequest`. A field that is None takes the model's own default.
Ranges are checked here, once, for all protocols.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

from mtplx_engine.errors import InvalidRequest

Role = Literal["system", "user", "assistant"]
Acceptance = Literal["auto", "coupled", "rejection"]

MAX_SEED = 2**64 - 1
MAX_STOP_STRINGS = 16


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Attributes:
        role: Who speaks.
        text: What was said.
        reasoning: What an assistant thought before it spoke, for templates that replay it.
    """

    role: Role
    text: str
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that the model's chat template renders.

    Attributes:
        messages: At least one, in order.
        template_kwargs: Extra variables for the template, for example `enable_thinking`.
    """

    messages: tuple[Message, ...]
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.messages:
            raise InvalidRequest("messages must hold at least one message.", "messages")


@dataclass(frozen=True, slots=True)
class RawText:
    """Text that is tokenised as it stands, without a chat template."""

    text: str


@dataclass(frozen=True, slots=True)
class TokenIds:
    """A prompt that is already tokenised."""

    ids: tuple[int, ...]


Prompt = Conversation | RawText | TokenIds


def _in_range(name: str, value: float | None, low: float, high: float, *, open_low: bool) -> None:
    if value is None:
        return
    below = value <= low if open_low else value < low
    if not isfinite(value) or below or value > high:
        bracket = "(" if open_low else "["
        raise InvalidRequest(f"{name} must be in {bracket}{low:g}, {high:g}]; got {value}.", name)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is drawn from the model's law. Applied in the order of the attributes.

    Attributes:
        temperature: 0 takes the most probable token; the logits are divided by it otherwise.
        top_k: Keep the k most probable tokens; 0 keeps all.
        top_p: Keep the smallest set of most probable tokens whose mass reaches p; 1 keeps all.
        min_p: Drop tokens less probable than min_p times the most probable; 0 keeps all.
        seed: Makes the answer reproducible; None draws fresh randomness.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        _in_range("temperature", self.temperature, 0.0, 2.0, open_low=False)
        _in_range("top_p", self.top_p, 0.0, 1.0, open_low=True)
        _in_range("min_p", self.min_p, 0.0, 1.0, open_low=False)
        if self.top_k is not None and self.top_k < 0:
            raise InvalidRequest(f"top_k must be 0 or more; got {self.top_k}.", "top_k")
        if self.seed is not None and not -(2**63) <= self.seed <= MAX_SEED:
            raise InvalidRequest(f"seed must fit 64 bits; got {self.seed}.", "seed")


@dataclass(frozen=True, slots=True)
class Limits:
    """When a generation ends, besides the model's own end token.

    Attributes:
        max_tokens: At most so many tokens; None means up to the context window.
        stop: Generation ends as soon as one of these strings is complete; it is not part of the
            answer.
    """

    max_tokens: int | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InvalidRequest(
                f"max_tokens must be 1 or more; got {self.max_tokens}.", "max_tokens"
            )
        if len(self.stop) > MAX_STOP_STRINGS:
            raise InvalidRequest(f"stop takes at most {MAX_STOP_STRINGS} strings.", "stop")
        if any(not text for text in self.stop):
            raise InvalidRequest("stop must not hold an empty string.", "stop")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One thing to generate.

    Attributes:
        prompt: What the model reads.
        sampling: How tokens are drawn.
        limits: When to end.
        depth: Tokens drafted per round; 0 decodes plainly, None takes the engine's setting.
        acceptance: How drafts are judged. `coupled` makes the seeded answer independent of the
            depth, `rejection` accepts a little more; `auto` is coupled with a seed, rejection
            without. Both leave the model's law unchanged.
    """

    prompt: Prompt
    sampling: Sampling = Sampling()
    limits: Limits = Limits()
    depth: int | None = None
    acceptance: Acceptance = "auto"

    def __post_init__(self) -> None:
        if self.depth is not None and self.depth < 0:
            raise InvalidRequest(f"depth must be 0 or more; got {self.depth}.", "depth")
