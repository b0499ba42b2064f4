"""What a caller asks of the engine. Plain values: this module knows neither MLX nor HTTP.

Every protocol decodes into one `ChatRequest`. A field that is None takes the model's own default.
Ranges are checked here, once, for all protocols.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from mtplx_engine.caching import CacheUse, KVQuant
from mtplx_engine.constraint import Grammar
from mtplx_engine.conversation import Conversation, Prompt
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.tools import Calling, check_calling

Acceptance = Literal["auto", "coupled", "rejection"]

MAX_SEED = 2**64 - 1
MAX_STOP_STRINGS = 16
MAX_LOGPROBS = 128


def _in_range(name: str, value: float | None, low: float, high: float, *, open_low: bool) -> None:
    if value is None:
        return
    below = value <= low if open_low else value < low
    if not isfinite(value) or below or value > high:
        bracket = "(" if open_low else "["
        raise InvalidRequest(f"{name} must be in {bracket}{low:g}, {high:g}]; got {value}.", name)


def _at_least(name: str, value: int | None, low: int) -> None:
    if value is not None and value < low:
        raise InvalidRequest(f"{name} must be {low} or more; got {value}.", name)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is drawn from the model's law. Applied in the order of the attributes.

    Attributes:
        logit_bias: Added to the logits of these tokens, by id.
        repetition_penalty: Logits of tokens in prompt or answer are divided by it when positive
            and multiplied when negative; 1 changes nothing. (CTRL, arXiv 1909.05858, section 4.1)
        presence_penalty: Subtracted from the logit of every token that the answer holds.
        frequency_penalty: Subtracted once for every time that the answer holds the token.
        penalty_window: The penalties see only so many of the latest tokens; None: all.
        top_n_sigma: Keep logits within n standard deviations of the largest; 0 keeps all.
            (arXiv 2411.07641)
        temperature: 0 takes the most probable token; the logits are divided by it otherwise.
        top_k: Keep the k most probable tokens; 0 keeps all.
        top_p: Keep the smallest set of most probable tokens whose mass reaches p; 1 keeps all.
        min_p: Drop tokens less probable than min_p times the most probable; 0 keeps all.
        xtc_probability: How often, position by position, the most probable tokens are dropped:
            of those at least `xtc_threshold` probable, all but the least. End tokens stay.
        xtc_threshold: See `xtc_probability`; above 0.5 it never drops anything.
        seed: Makes the answer reproducible; None draws fresh randomness.
    """

    logit_bias: Mapping[int, float] = field(default_factory=dict)
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    penalty_window: int | None = None
    top_n_sigma: float | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        _in_range("repetition_penalty", self.repetition_penalty, 0.001, 10.0, open_low=False)
        _in_range("presence_penalty", self.presence_penalty, -2.0, 2.0, open_low=False)
        _in_range("frequency_penalty", self.frequency_penalty, -2.0, 2.0, open_low=False)
        _in_range("top_n_sigma", self.top_n_sigma, 0.0, 100.0, open_low=False)
        _in_range("temperature", self.temperature, 0.0, 2.0, open_low=False)
        _in_range("top_p", self.top_p, 0.0, 1.0, open_low=True)
        _in_range("min_p", self.min_p, 0.0, 1.0, open_low=False)
        _in_range("xtc_probability", self.xtc_probability, 0.0, 1.0, open_low=False)
        _in_range("xtc_threshold", self.xtc_threshold, 0.0, 1.0, open_low=False)
        for value in self.logit_bias.values():
            _in_range("logit_bias", value, -100.0, 100.0, open_low=False)
        _at_least("penalty_window", self.penalty_window, 1)
        _at_least("top_k", self.top_k, 0)
        if self.seed is not None and not -(2**63) <= self.seed <= MAX_SEED:
            raise InvalidRequest(f"seed must fit 64 bits; got {self.seed}.", "seed")


@dataclass(frozen=True, slots=True)
class Limits:
    """When a generation ends, besides the model's own end token.

    Attributes:
        max_tokens: At most so many tokens; None means up to the context window. 0 reads the
            prompt only, which makes sense with `prompt_logprobs`.
        min_tokens: No end token and no token of `stop_token_ids` is drawn before so many others,
            unless there is nothing else to draw.
        stop: Generation ends as soon as one of these strings is complete; it is not part of the
            answer.
        stop_token_ids: Tokens that end the answer like the model's own end tokens.
        ignore_eos: Go on after the model's own end tokens.
    """

    max_tokens: int | None = None
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        _at_least("max_tokens", self.max_tokens, 0)
        _at_least("min_tokens", self.min_tokens, 0)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise InvalidRequest(
                f"min_tokens ({self.min_tokens}) is more than max_tokens ({self.max_tokens}).",
                "min_tokens",
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
        copy_lane: Whether drafts may also be copied from earlier text that recurs; None takes the
            engine's setting.
        logprobs: Report each token's log-probability and so many of the likeliest tokens beside
            it, under the model's own law before any processor; None reports nothing.
        prompt_logprobs: The same for every token of the prompt but the first.
        echo: Tell the prompt's text, token by token.
        grammar: What the answer must look like; None: anything. Thinking comes before it, and
            calls may come in its place.
        calling: Whether and what the model may call of the conversation's tools.
        session: What the client calls the conversation; None: told by how the prompt begins.
        caching: `keep` uses the session cache; `read` goes on from what is there but leaves
            nothing, as fits a side request such as one for a title; `off` does neither.
        kv: Whether and how keys and values are quantised; None takes the engine's setting.
    """

    prompt: Prompt
    sampling: Sampling = Sampling()
    limits: Limits = Limits()
    depth: int | None = None
    acceptance: Acceptance = "auto"
    copy_lane: bool | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    echo: bool = False
    grammar: Grammar | None = None
    calling: Calling = field(default_factory=Calling)
    session: str | None = None
    caching: CacheUse = "keep"
    kv: KVQuant | None = None

    def __post_init__(self) -> None:
        tools = self.prompt.tools if isinstance(self.prompt, Conversation) else ()
        check_calling(tools, self.calling)
        _at_least("depth", self.depth, 0)
        for name in ("logprobs", "prompt_logprobs"):
            _at_least(name, getattr(self, name), 0)
            if (getattr(self, name) or 0) > MAX_LOGPROBS:
                raise InvalidRequest(f"{name} must be at most {MAX_LOGPROBS}.", name)
        if self.limits.max_tokens == 0 and self.prompt_logprobs is None:
            raise InvalidRequest(
                "max_tokens must be 1 or more, unless only the prompt is to be scored.",
                "max_tokens",
            )
