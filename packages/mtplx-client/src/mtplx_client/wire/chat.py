"""`POST /v1/chat/completions`: OpenAI's Chat Completions, with our extensions.

The request declares the fields that the server honours. Others are accepted as extra fields.
"""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from mtplx_client.wire.base import WireReply, WireRequest
from mtplx_client.wire.options import BOUNDED, GenerationOptions
from mtplx_client.wire.usage import Report, Usage


class ContentPart(WireRequest):
    """A piece of a message; `type` is `text` for the only kind that is served so far."""

    type: str
    text: str | None = None


Parts = TypeAliasType("Parts", Annotated[list[ContentPart], *BOUNDED])


class CalledFunction(WireRequest):
    """What an assistant called.

    Attributes:
        name: Of the function.
        arguments: JSON text of an object.
    """

    name: str
    arguments: str


class MessageToolCall(WireRequest):
    """A call that an assistant made.

    Attributes:
        id: What the message with its result refers to.
        type: `function`.
        function: What was called.
    """

    id: str
    function: CalledFunction
    type: str = "function"


ToolCalls = TypeAliasType("ToolCalls", Annotated[list[MessageToolCall], *BOUNDED])


class ChatMessage(WireRequest):
    """One turn of the conversation.

    Attributes:
        role: `system`, `developer` (the same), `user`, `assistant` or `tool`.
        content: Text, or parts of it. None only for an assistant.
        reasoning_content: What an assistant thought before it spoke.
        reasoning: Another name for `reasoning_content`.
        tool_calls: Functions that an assistant called.
        tool_call_id: The call whose result a message of role `tool` brings.
    """

    role: str
    content: str | Parts | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: ToolCalls | None = None
    tool_call_id: str | None = None


class FunctionDefinition(WireRequest):
    """A function that the model may call.

    Attributes:
        name: Up to 128 letters, digits and `_ - . : /`.
        description: What it does, for the model.
        parameters: JSON schema of its arguments, an object; None: it takes none.
        strict: Whether calls must keep to the schema.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChatTool(WireRequest):
    """A tool; `type` is `function` for the only kind that is served."""

    type: str
    function: FunctionDefinition | None = None


Tools = TypeAliasType("Tools", Annotated[list[ChatTool], *BOUNDED])


class SchemaFormat(WireRequest):
    """The schema of an answer.

    Attributes:
        name: For people; not used.
        description: For people; not used.
        schema_: JSON schema of the answer; `schema` on the wire.
        strict: Not used: the schema is always kept to.
    """

    name: str | None = None
    description: str | None = None
    schema_: dict[str, Any] | bool | None = Field(None, alias="schema")
    strict: bool | None = None


class ResponseFormat(WireRequest):
    """What an answer must look like.

    Attributes:
        type: `text`, `json_object`, `json_schema` or `grammar`. (The last is an extension)
        json_schema: For `json_schema`.
        schema_: A schema without the wrapping of `json_schema`; `schema` on the wire.
        syntax: For `grammar`: `lark` or `regex`.
        definition: For `grammar`: its text.
    """

    type: str
    json_schema: SchemaFormat | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    syntax: str | None = None
    definition: str | None = None


class ChatCompletionRequest(GenerationOptions):
    """What to generate. A field that is None takes the model's own default.

    Attributes:
        messages: The conversation, at least one message.
        max_completion_tokens: At most so many tokens, reasoning included; wins over `max_tokens`.
        tools: Functions that the model may ask the client to run.
        tool_choice: `auto`, `none`, `required`, one function by name, or `allowed_tools`.
        parallel_tool_calls: Whether one answer may hold several calls.
        response_format: `text`, `json_object`, `json_schema`; also `grammar` with a `syntax` of
            `lark` or `regex` and a `definition`.
        logprobs: Tell each token's log-probability under the model's own law.
        top_logprobs: So many of the likeliest tokens beside it; 0 to 20, needs `logprobs`.
        reasoning_effort: How much to think, where the model has levels.
        chat_template_kwargs: Variables for the chat template, for example `enable_thinking`.
            (Extension)
    """

    messages: Annotated[list[ChatMessage], *BOUNDED]
    max_completion_tokens: int | None = None
    tools: Tools | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class TopLogprob(WireReply):
    """A likely token; `bytes` are what it stands for, also where `token` cannot show them."""

    token: str
    logprob: float
    bytes: list[int] | None = None


class TokenLogprob(TopLogprob):
    """A token of the answer, and the likeliest ones at its place."""

    top_logprobs: list[TopLogprob] = Field(default_factory=list)


class ChoiceLogprobs(WireReply):
    """Of all tokens drawn: of reasoning, text and calls, and the end token."""

    content: list[TokenLogprob] | None = None
    refusal: None = None


class FunctionCall(WireReply):
    """What the model calls; `arguments` is JSON text, in a chunk a piece of it."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(WireReply):
    """A call; in a chunk `id`, `type` and the name come with its first piece only."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionCall | None = None


class ReplyMessage(WireReply):
    """The answer; `reasoning_content` is there when the model thought first."""

    role: str
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None


class Choice(WireReply):
    """One answer and why it ended: `stop`, `length` or `tool_calls`."""

    index: int
    message: ReplyMessage
    finish_reason: str | None = None
    logprobs: ChoiceLogprobs | None = None


class ChatCompletion(WireReply):
    """Whole answers."""

    id: str
    object: str = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None = None
    mtplx: Report | None = None


class Delta(WireReply):
    """What is new in a chunk."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None


class ChunkChoice(WireReply):
    """A chunk's part of one answer."""

    index: int
    delta: Delta
    finish_reason: str | None = None
    logprobs: ChoiceLogprobs | None = None


class ChatCompletionChunk(WireReply):
    """One chunk of streamed answers."""

    id: str
    object: str = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice] = Field(default_factory=list)
    usage: Usage | None = None
    mtplx: Report | None = None
