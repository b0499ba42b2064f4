"""What request bodies have in common: how tokens are drawn, when to end.

`DecodingOptions` go by the same names in every protocol, where it takes them; `GenerationOptions`
are those of Chat Completions and Completions.
"""

from typing import Annotated

from pydantic import FailFast, Field
from typing_extensions import TypeAliasType

from mtplx_client.wire.base import WireRequest

# Far beyond any real request. The bound, and giving up at the first bad element, keep a hostile
# body from costing seconds.
MAX_ELEMENTS = 10_000
BOUNDED = (FailFast(), Field(max_length=MAX_ELEMENTS))
_MAX_TOKENS = 4_000_000  # of a prompt that is tokenised already

# Aliases, because bounds are not hashable and so cannot stand in a union themselves.
Strings = TypeAliasType("Strings", Annotated[list[str], *BOUNDED])
Integers = TypeAliasType("Integers", Annotated[list[int], *BOUNDED])
Tokens = TypeAliasType("Tokens", Annotated[list[int], FailFast(), Field(max_length=_MAX_TOKENS)])
TokenLists = TypeAliasType("TokenLists", Annotated[list[Tokens], *BOUNDED])


class StreamOptions(WireRequest):
    """Options of a streamed answer.

    Attributes:
        include_usage: Send a last chunk with token counts.
    """

    include_usage: bool | None = None


class DecodingOptions(WireRequest):
    """How tokens are drawn and drafted. A field that is None takes the model's own default.

    Attributes:
        temperature: 0 to 2; 0 always takes the most probable token.
        top_p: Mass of the most probable tokens that are kept; above 0, up to 1.
        top_k: Number of the most probable tokens that are kept; 0 keeps all. (Extension)
        min_p: Drop tokens less probable than this times the most probable. (Extension)
        top_n_sigma: Keep logits within so many standard deviations of the largest. (Extension)
        xtc_probability: How often the most probable tokens are dropped. (Extension)
        xtc_threshold: How probable a token must be to be dropped so. (Extension)
        presence_penalty: -2 to 2; subtracted from the logits of tokens that the answer holds.
        frequency_penalty: -2 to 2; subtracted once for every time that the answer holds the token.
        repetition_penalty: Divides logits of tokens in prompt and answer. (Extension)
        penalty_window: Penalties see only so many of the latest tokens. (Extension)
        logit_bias: Added to the logits of these tokens, by id; -100 to 100.
        seed: The same seed gives the same answer, at any depth.
        stop_token_ids: Tokens that end the answer. (Extension)
        min_tokens: No end before so many tokens. (Extension)
        ignore_eos: Go on after the model's own end token. (Extension)
        depth: Tokens drafted per round; 0 decodes plainly. (Extension)
        generation_mode: `mtp` drafts, `ar` decodes plainly. (Extension)
        acceptance: How drafts are judged: `auto`, `coupled` or `rejection`. (Extension)
        copy_lane: Whether drafts may be copied from earlier text. (Extension)
        kv_bits: Quantise keys and values to 8, 4 or 2 bits; 0 and less: not at all. (Extension)
        kv_group_size: Numbers that share a scale: 32, 64 or 128. (Extension)
        quantized_kv_start: Quantise only for prompts of at least so many tokens; 0 and less: for
            all. (Extension)
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    top_n_sigma: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    penalty_window: int | None = None
    logit_bias: dict[str, float] | None = None
    seed: int | None = None
    stop_token_ids: Integers | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    depth: int | None = None
    generation_mode: str | None = None
    acceptance: str | None = None
    copy_lane: bool | None = None
    kv_bits: int | None = None
    kv_group_size: int | None = None
    quantized_kv_start: int | None = None


class GenerationOptions(DecodingOptions):
    """How to generate. A field that is None takes the model's own default.

    Attributes:
        model: Any name is answered by the served model, unless the server is strict about it.
        max_tokens: At most so many tokens.
        n: Answers to make; they share the reading of the prompt.
        stop: A string, or up to 16 of them, that end the answer.
        stream: Send the answer in chunks as it is made.
        stream_options: `include_usage`.
    """

    model: str | None = None
    max_tokens: int | None = None
    n: int | None = None
    stop: str | Strings | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
