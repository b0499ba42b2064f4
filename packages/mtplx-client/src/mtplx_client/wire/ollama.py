"""`/api/chat`, `/api/generate` and `/api/pull`: Ollama's API, with our extensions.

The requests declare the fields that the server honours. Others are accepted as extra fields.
"""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from mtplx_client.wire.base import WireReply, WireRequest
from mtplx_client.wire.chat import TokenLogprob
from mtplx_client.wire.options import BOUNDED, DecodingOptions, Strings
from mtplx_client.wire.usage import Report


class OllamaOptions(DecodingOptions):
    """How to generate. An option that is None takes the model's own default.

    Attributes:
        num_predict: At most so many tokens, thoughts included; 0 and below: no limit.
        stop: A string, or up to 16 of them, that end the answer.
        seed: The same seed gives the same answer, at any depth; -1 draws fresh randomness.
        repeat_penalty: Divides logits of tokens in prompt and answer; wins over
            `repetition_penalty`.
        repeat_last_n: Penalties see only so many of the latest tokens; -1: all, 0: there are no
            penalties. Wins over `penalty_window`.
        num_ctx: Tokens of prompt and answer that there must be room for; the window is always the
            model's own, so more than that has no effect.
        repetition_penalty: Another name for `repeat_penalty`. (Extension)
    """

    num_predict: int | None = None
    stop: str | Strings | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    num_ctx: int | None = None


class OllamaCalledFunction(WireRequest):
    """What an assistant called; `arguments` is an object."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class OllamaMessageCall(WireRequest):
    """A call that an assistant made.

    Attributes:
        function: What was called.
        id: What the message with its result refers to, if anything.
    """

    function: OllamaCalledFunction
    id: str | None = None


OllamaCalls = TypeAliasType("OllamaCalls", Annotated[list[OllamaMessageCall], *BOUNDED])


class OllamaMessage(WireRequest):
    """One turn of the conversation.

    Attributes:
        role: `system`, `user`, `assistant` or `tool`.
        content: Text. None only for an assistant.
        thinking: What an assistant thought before it spoke.
        tool_calls: Functions that an assistant called.
        tool_name: The function whose result a message of role `tool` brings.
        tool_call_id: The call whose result that is.
    """

    role: str
    content: str | None = None
    thinking: str | None = None
    tool_calls: OllamaCalls | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


class OllamaFunction(WireRequest):
    """A function that the model may call.

    Attributes:
        name: Up to 128 letters, digits and `_ - . : /`.
        description: What it does, for the model.
        parameters: JSON schema of its arguments, an object; None: it takes none.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class OllamaTool(WireRequest):
    """A tool; `type` is `function` for the only kind that is served."""

    type: str | None = None
    function: OllamaFunction | None = None


OllamaMessages = TypeAliasType("OllamaMessages", Annotated[list[OllamaMessage], *BOUNDED])
OllamaTools = TypeAliasType("OllamaTools", Annotated[list[OllamaTool], *BOUNDED])


class OllamaRequest(WireRequest):
    """What both ways to generate have in common.

    Attributes:
        model: Any name is answered by the served model, unless the server is strict about it.
        stream: Send the answer in lines as it is made; true when absent.
        think: Whether to think, or how much: a level such as `low`, where the model has levels.
        format: `json`, or the JSON schema of the answer.
        options: How to generate, see below.
        logprobs: Tell each token's log-probability under the model's own law.
        top_logprobs: So many of the likeliest tokens beside it; 0 to 20, needs `logprobs`.
    """

    model: str | None = None
    stream: bool | None = None
    think: bool | str | None = None
    format: str | dict[str, Any] | None = None
    options: OllamaOptions | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


class OllamaChatRequest(OllamaRequest):
    """What to answer.

    Attributes:
        messages: The conversation; without any the model is only made ready, which it always is.
        tools: Functions that the model may ask the client to run.
    """

    messages: OllamaMessages | None = None
    tools: OllamaTools | None = None


class OllamaGenerateRequest(OllamaRequest):
    """What to answer, or to continue.

    Attributes:
        prompt: What the user says; without it the model is only made ready, which it always is.
        system: What comes before it.
        raw: Continue `prompt` as it stands, without the chat template.
    """

    prompt: str | None = None
    system: str | None = None
    raw: bool | None = None


class OllamaModelRequest(WireRequest):
    """A body that names a model.

    Attributes:
        model: Its name.
        name: An older name for `model`.
        stream: Answer in lines; true when absent.
    """

    model: str | None = None
    name: str | None = None
    stream: bool | None = None


class OllamaAny(WireRequest):
    """A body that is not read."""


class OllamaCalled(WireReply):
    """What the model calls: the number of the call, the function, and an object of arguments."""

    index: int = 0
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class OllamaCall(WireReply):
    """A call; calls are always whole."""

    id: str | None = None
    function: OllamaCalled


class OllamaReplyMessage(WireReply):
    """The answer, or what is new of it; `thinking` is there when the model thinks."""

    role: str
    content: str = ""
    thinking: str | None = None
    tool_calls: list[OllamaCall] | None = None


class OllamaReply(WireReply):
    """What lines and whole answers have in common; times are in nanoseconds.

    Attributes:
        model: Id of the served model.
        created_at: When this was written, in RFC 3339.
        done: Whether the answer ends here; what follows is there only then.
        done_reason: `stop` or `length`; `load` or `unload` when nothing was to be generated.
        total_duration: From the request to the last token.
        load_duration: Always 0.
        prompt_eval_count: Tokens of the prompt.
        prompt_eval_duration: For the prompt and the first token.
        eval_count: Tokens drawn, end tokens and thoughts included.
        eval_duration: From the first token to the last.
        logprobs: Of the tokens of this line.
        mtplx: How the answer was made.
    """

    model: str
    created_at: str
    done: bool
    done_reason: str | None = None
    total_duration: int | None = None
    load_duration: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_duration: int | None = None
    eval_count: int | None = None
    eval_duration: int | None = None
    logprobs: list[TokenLogprob] | None = None
    mtplx: Report | None = None


class OllamaChatReply(OllamaReply):
    """A whole answer to a conversation, or one line of a streamed one."""

    message: OllamaReplyMessage


class OllamaGenerateReply(OllamaReply):
    """A whole answer to a prompt, or one line of a streamed one."""

    response: str = ""
    thinking: str | None = None


class OllamaStatus(WireReply):
    """How far something has come; `success` at the end."""

    status: str


class OllamaError(WireReply):
    """The body of every reply with a status of 400 or more, and the last line of a failed stream.

    Attributes:
        error: What went wrong, for people.
    """

    error: str
