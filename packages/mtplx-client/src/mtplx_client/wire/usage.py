"""Token counts and statistics, as replies of both OpenAI surfaces carry them."""

from pydantic import Field

from mtplx_client.wire.base import WireReply


class PromptTokensDetails(WireReply):
    """Of the prompt's tokens, those that were not computed again."""

    cached_tokens: int = 0


class CompletionTokensDetails(WireReply):
    """Of the answer's tokens, those that were reasoning."""

    reasoning_tokens: int = 0


class Usage(WireReply):
    """Token counts; of several answers together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails | None = None
    completion_tokens_details: CompletionTokensDetails | None = None


class Report(WireReply):
    """How the answers were made; under `mtplx` in a reply, and at the end of a stream.

    Counts are of all answers together, times of the slowest.

    Attributes:
        request_id: The same as the `x-request-id` header.
        model: Id of the served model.
        requested_model: The name that the request used, or None.
        mode: `mtp` when the head could draft, `copy` when drafts were copied only, `plain` when
            every token was decoded alone.
        depth: Tokens that the head drafts per usual round, at the end.
        acceptance: The rule that judged the drafts: `greedy`, `coupled` or `rejection`; None when
            plain.
        rounds: Forward passes after the prompt.
        drafted: Drafts judged at position 1, 2, ... of a round.
        accepted: Drafts accepted at position 1, 2, ... of a round.
        acceptance_rate: Accepted drafts for each that was judged; None without drafts.
        tokens_per_round: Tokens for each pass after the prompt; None without passes.
        copied: Drafts copied from earlier text.
        copies_accepted: Those of them that were accepted.
        forced: Tokens that a grammar left no choice about.
        prompt_tokens: Tokens of the prompt.
        cached_tokens: Those of them that were not computed again.
        completion_tokens: Tokens drawn, end tokens and reasoning included.
        reasoning_tokens: Those of them that were reasoning.
        queue_s: Seconds until the model first worked on the request.
        prefill_s: Seconds for the prompt and the first token.
        decode_s: Seconds from the first token to the last.
        first_token_s: Seconds from the request to the first token.
        total_s: Seconds from the request to the last token.
        prefill_tokens_per_s: Speed of reading the prompt; None when it took no time.
        tokens_per_s: Speed of decoding; None when there was only one token.
        peak_memory: Most bytes that MLX held while this request had its turns.
        kv: How keys and values were quantised, as in `q8 group 64`; None when they were not.
        stop_sequence: The stop string that ended the first answer, or None.
        grammar: What gave the answer its form: `json_schema`, `json_object`, `lark`, `regex`; None
            without one.
        effort: The level of thinking that the model was given, or None.
        tool_dialect: How the model writes calls; None where it could make none.
        tool_calls: Calls that can be run.
        broken_calls: Calls that stayed incomplete.
        dropped_calls: Calls after the first, where `parallel_tool_calls` is false.
        ignored_fields: Request fields that had no effect.
    """

    request_id: str
    model: str = ""
    requested_model: str | None = None
    mode: str
    depth: int
    acceptance: str | None = None
    rounds: int = 0
    drafted: list[int] = Field(default_factory=list)
    accepted: list[int] = Field(default_factory=list)
    acceptance_rate: float | None = None
    tokens_per_round: float | None = None
    copied: int = 0
    copies_accepted: int = 0
    forced: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    first_token_s: float = 0.0
    total_s: float = 0.0
    prefill_tokens_per_s: float | None = None
    tokens_per_s: float | None = None
    peak_memory: int = 0
    kv: str | None = None
    stop_sequence: str | None = None
    grammar: str | None = None
    effort: str | None = None
    tool_dialect: str | None = None
    tool_calls: int = 0
    broken_calls: int = 0
    dropped_calls: int = 0
    ignored_fields: list[str] = Field(default_factory=list)
