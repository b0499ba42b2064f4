"""`POST /v1/completions`: OpenAI's older surface, text in and text out, with our extensions.

The request declares the fields that the server honours. Others are accepted as extra fields.
"""

from pydantic import Field

from mtplx_client.wire.base import WireReply
from mtplx_client.wire.options import GenerationOptions, Strings, TokenLists, Tokens
from mtplx_client.wire.usage import Report, Usage


class CompletionRequest(GenerationOptions):
    """What to continue. A field that is None takes the model's own default.

    Attributes:
        prompt: A text, token ids, or a list of either; each is continued.
        max_tokens: At most so many tokens, 16 when absent; 0 only scores the prompt, with `echo`
            and `logprobs`.
        echo: Begin the text with the prompt, and score it, too.
        logprobs: So many of the likeliest tokens at each place, and the log-probability of each
            token, under the model's own law.
    """

    prompt: str | Strings | Tokens | TokenLists
    echo: bool | None = None
    logprobs: int | None = None


class CompletionLogprobs(WireReply):
    """Scores, in four lists of the same length, one entry a token.

    Attributes:
        tokens: What each stands for; after `bytes:`, in hexadecimal, where it is part of a
            character.
        token_logprobs: Natural log-probabilities; None for the first token of a prompt.
        top_logprobs: The likeliest tokens and the token itself; None for the first of a prompt.
        text_offset: Where each token begins, in characters of the whole text.
    """

    tokens: list[str] = Field(default_factory=list)
    token_logprobs: list[float | None] = Field(default_factory=list)
    top_logprobs: list[dict[str, float] | None] = Field(default_factory=list)
    text_offset: list[int] = Field(default_factory=list)


class CompletionChoice(WireReply):
    """One answer, or a piece of it in a stream, and why it ended: `stop` or `length`."""

    text: str
    index: int
    logprobs: CompletionLogprobs | None = None
    finish_reason: str | None = None


class Completion(WireReply):
    """Whole answers, or one chunk of streamed ones."""

    id: str
    object: str = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice] = Field(default_factory=list)
    usage: Usage | None = None
    mtplx: Report | None = None
