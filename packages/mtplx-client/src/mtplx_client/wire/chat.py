"""`POST /v1/chat/completions`: OpenAI's Chat Completions, with our extensions.

The request declares the fields that the server honours. Others are accepted as extra fields.
"""

from typing import Annotated, Any

from pydantic import FailFast, Field
from typing_extensions import TypeAliasType

from mtplx_client.wire._base import WireReply, WireRequest

# Far beyond any real conversation. The bound, and giving up at the first bad element, keep a
# hostile body from costing seconds.
MAX_ELEMENTS = 10_000
_BOUNDED = (FailFast(), Field(max_length=MAX_ELEMENTS))


class ContentPart(WireRequest):
    """A piece of a message; `type` is `text` for the only kind that is served so far."""

    type: str
    text: str | None = None


# Aliases, because bounds are not hashable and so cannot stand in a union themselves.
Parts = TypeAliasType("Parts", Annotated[list[ContentPart], *_BOUNDED])
Strings = TypeAliasType("Strings", Annotated[list[str], *_BOUNDED])


class ChatMessage(WireRequest):
    """One turn of the conversation.

    Attributes:
        role: `system`, `developer` (the same), `user` or `assistant`.
        content: Text, or parts of it. None only for an assistant.
        reasoning_content: What an assistant thought before it spoke.
        reasoning: Another name for `reasoning_content`.
    """

    role: str
    content: str | Parts | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class StreamOptions(WireRequest):
    """Options of a streamed answer.

    Attributes:
        include_usage: Send a last chunk with token counts.
    """

    include_usage: bool | None = None


class ChatCompletionRequest(WireRequest):
    """What to generate. A field that is None takes the model's own default.

    Attributes:
        messages: The conversation, at least one message.
        model: Name of the model.
        max_completion_tokens: At most so many tokens, reasoning included.
        max_tokens: The older name; `max_completion_tokens` wins.
        temperature: 0 to 2; 0 always takes the most probable token.
        top_p: Mass of the most probable tokens that are kept.
        top_k: Number of the most probable tokens that are kept; 0 keeps all.
        min_p: Drop tokens less probable than this times the most probable.
        seed: Makes the answer reproducible.
        stop: Strings that end the answer.
        stream: Send the answer in chunks as it is made.
        stream_options: Options of a streamed answer.
        chat_template_kwargs: Extra variables for the chat template.
        depth: Tokens drafted per round; 0 decodes plainly.
        generation_mode: `mtp` drafts, `ar` decodes plainly.
        acceptance: How drafts are judged: `auto`, `coupled` or `rejection`.
    """

    messages: Annotated[list[ChatMessage], *_BOUNDED]
    model: str | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    stop: str | Strings | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    depth: int | None = None
    generation_mode: str | None = None
    acceptance: str | None = None


class PromptTokensDetails(WireReply):
    """Of the prompt's tokens, those that were not computed again."""

    cached_tokens: int = 0


class CompletionTokensDetails(WireReply):
    """Of the answer's tokens, those that were reasoning."""

    reasoning_tokens: int = 0


class ChatUsage(WireReply):
    """Token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails | None = None
    completion_tokens_details: CompletionTokensDetails | None = None


class Report(WireReply):
    """How the answer was made; under `mtplx` in a reply, and in the finish chunk of a stream.

    Attributes:
        request_id: The same as the `x-request-id` header.
        mode: `mtp` when the head could draft, `copy` when drafts were copied only, `plain` when
            every token was decoded alone.
        depth: Tokens that the head drafts per usual round, at the end.
        acceptance: The rule that judged the drafts; None when plain.
        rounds: Forward passes after the prompt.
        drafted: Drafts judged at position 1, 2, ... of a round.
        accepted: Drafts accepted at position 1, 2, ... of a round.
        copied: Drafts copied from earlier text.
        copies_accepted: Those of them that were accepted.
        forced: Tokens that a grammar left no choice about.
        queue_s: Seconds until the model first worked on the request.
        prefill_s: Seconds for the prompt and the first token.
        decode_s: Seconds from the first token to the last.
        tokens_per_s: Tokens per second while decoding; None when there was only one token.
        peak_memory: Most bytes that MLX held while this request had its turns.
        stop_sequence: The stop string that ended the answer, or None.
        ignored_fields: Request fields that had no effect.
    """

    request_id: str
    mode: str
    depth: int
    acceptance: str | None = None
    rounds: int = 0
    drafted: list[int] = Field(default_factory=list)
    accepted: list[int] = Field(default_factory=list)
    copied: int = 0
    copies_accepted: int = 0
    forced: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    tokens_per_s: float | None = None
    peak_memory: int = 0
    stop_sequence: str | None = None
    ignored_fields: list[str] = Field(default_factory=list)


class ReplyMessage(WireReply):
    """The answer; `reasoning_content` is there when the model thought first."""

    role: str
    content: str | None = None
    reasoning_content: str | None = None


class Choice(WireReply):
    """One answer and why it ended: `stop` or `length`."""

    index: int
    message: ReplyMessage
    finish_reason: str | None = None
    logprobs: Any = None


class ChatCompletion(WireReply):
    """A whole answer."""

    id: str
    object: str = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage | None = None
    mtplx: Report | None = None


class Delta(WireReply):
    """What is new in a chunk."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None


class ChunkChoice(WireReply):
    """A chunk's part of one answer."""

    index: int
    delta: Delta
    finish_reason: str | None = None
    logprobs: Any = None


class ChatCompletionChunk(WireReply):
    """One chunk of a streamed answer."""

    id: str
    object: str = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice] = Field(default_factory=list)
    usage: ChatUsage | None = None
    mtplx: Report | None = None
