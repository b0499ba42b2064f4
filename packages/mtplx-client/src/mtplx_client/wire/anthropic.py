"""`POST /v1/messages` and `/v1/messages/count_tokens`: Anthropic's Messages, with our extensions.

The request declares the fields that the server honours. Others are accepted as extra fields.
"""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from mtplx_client.wire.base import WireReply, WireRequest
from mtplx_client.wire.options import BOUNDED, DecodingOptions, Strings
from mtplx_client.wire.usage import Report


class InputText(WireRequest):
    """A piece of the system prompt or of a tool's result; only `type` `text` is served."""

    type: str
    text: str | None = None


InputTexts = TypeAliasType("InputTexts", Annotated[list[InputText], *BOUNDED])


class InputBlock(WireRequest):
    """A piece of a message.

    Attributes:
        type: `text`, `thinking`, `redacted_thinking`, `tool_use` or `tool_result`.
        text: For `text`.
        thinking: For `thinking`: what an assistant thought before it spoke.
        id: For `tool_use`: what the block with its result refers to.
        name: For `tool_use`: the tool.
        input: For `tool_use`: its arguments.
        tool_use_id: For `tool_result`: the call whose result this is.
        content: For `tool_result`: text, or blocks of text; None when there is nothing to tell.
        is_error: For `tool_result`: whether the call failed.
    """

    type: str
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    tool_use_id: str | None = None
    content: str | InputTexts | dict[str, Any] | None = None
    is_error: bool | None = None


InputBlocks = TypeAliasType("InputBlocks", Annotated[list[InputBlock], *BOUNDED])


class InputMessage(WireRequest):
    """One turn of the conversation.

    Attributes:
        role: `user`, `assistant` or `system`.
        content: Text, or blocks.
    """

    role: str
    content: str | InputBlocks


class ClientTool(WireRequest):
    """A tool that the model may call.

    Attributes:
        type: None or `custom` for the only kind that is served.
        name: Up to 128 letters, digits and `_ - . : /`.
        description: What it does, for the model.
        input_schema: JSON schema of its arguments, an object.
        strict: Whether calls must keep to the schema.
    """

    type: str | None = None
    name: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None


ClientTools = TypeAliasType("ClientTools", Annotated[list[ClientTool], *BOUNDED])


class ToolChoice(WireRequest):
    """Which tools may be called.

    Attributes:
        type: `auto`, `any`, `tool` or `none`.
        name: For `tool`: which.
        disable_parallel_tool_use: Whether one answer may hold one call only.
    """

    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(WireRequest):
    """Whether the model thinks before it speaks; `type` is `enabled`, `disabled` or `adaptive`."""

    type: str


class OutputFormat(WireRequest):
    """What an answer must look like.

    Attributes:
        type: `json_schema`.
        schema_: JSON schema of the answer; `schema` on the wire.
    """

    type: str
    schema_: dict[str, Any] | None = Field(None, alias="schema")


class OutputConfig(WireRequest):
    """How to answer.

    Attributes:
        effort: How much to think, where the model has levels.
        format: What the answer must look like.
    """

    effort: str | None = None
    format: OutputFormat | None = None


class CountTokensRequest(DecodingOptions):
    """A prompt to count; the fields of a request to generate are all accepted.

    Attributes:
        messages: The conversation, at least one message.
        model: Any name is answered by the served model, unless the server is strict about it.
        system: Comes before the conversation: text, or blocks of text.
        max_tokens: At most so many tokens, reasoning included. Must be there, except to count.
        stop_sequences: Up to 16 strings that end the answer.
        stream: Send the answer in events as it is made.
        tools: What the model may ask the client to run.
        tool_choice: `auto`, `any`, `tool` with a `name`, or `none`; each but the last with
            `disable_parallel_tool_use`.
        thinking: `enabled` and `disabled` set `enable_thinking` for the chat template; `adaptive`
            leaves it to the model.
        output_config: `effort`, and `format` with a `json_schema`.
        output_format: Another name for `output_config.format`.
        chat_template_kwargs: Variables for the chat template. (Extension)
    """

    messages: Annotated[list[InputMessage], *BOUNDED]
    model: str | None = None
    system: str | InputTexts | None = None
    max_tokens: int | None = None
    stop_sequences: Strings | None = None
    stream: bool | None = None
    tools: ClientTools | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class MessagesRequest(CountTokensRequest):
    """What to generate. A field that is None takes the model's own default.

    Attributes:
        max_tokens: At most so many tokens, reasoning included. Must be there, except to count.
    """

    max_tokens: int


class ReplyBlock(WireReply):
    """A piece of an answer.

    Attributes:
        type: `thinking`, `text` or `tool_use`.
        text: For `text`.
        thinking: For `thinking`.
        signature: For `thinking`: always the same word.
        id: For `tool_use`: what the block with its result must refer to.
        name: For `tool_use`: the tool.
        input: For `tool_use`: its arguments.
    """

    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class OutputTokensDetails(WireReply):
    """Of the answer's tokens, those that were reasoning."""

    thinking_tokens: int = 0


class MessagesUsage(WireReply):
    """Token counts.

    Attributes:
        input_tokens: Of the prompt, without those that were not computed again.
        cache_creation_input_tokens: Always 0.
        cache_read_input_tokens: Tokens of the prompt that were not computed again.
        output_tokens: Tokens drawn, end tokens and reasoning included.
        output_tokens_details: How many of them were reasoning.
    """

    input_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int
    output_tokens_details: OutputTokensDetails | None = None


class MessageReply(WireReply):
    """The answer, and why it ended.

    Attributes:
        id: Of this answer.
        type: Always `message`.
        role: Always `assistant`.
        model: Id of the served model.
        content: What was said, in order.
        stop_reason: `end_turn`, `max_tokens`, `stop_sequence`, `tool_use` or
            `model_context_window_exceeded`; None at the beginning of a stream.
        stop_sequence: The stop string that ended it, or None.
        usage: Token counts.
        mtplx: How it was made.
    """

    id: str
    type: str = "message"
    role: str = "assistant"
    model: str
    content: list[ReplyBlock] = Field(default_factory=list)
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: MessagesUsage
    mtplx: Report | None = None


class MessagesEvent(WireReply):
    """An event of a stream; `type` says which."""

    type: str


class MessageStart(MessagesEvent):
    """The first event of a stream: the answer, still without content."""

    type: str = "message_start"
    message: MessageReply


class Ping(MessagesEvent):
    """An event that says nothing."""

    type: str = "ping"


class BlockStart(MessagesEvent):
    """A block begins, still empty; blocks are numbered from 0 and never overlap."""

    type: str = "content_block_start"
    index: int
    content_block: ReplyBlock


class BlockDelta(WireReply):
    """What is new in a block.

    Attributes:
        type: `text_delta`, `thinking_delta`, `signature_delta` or `input_json_delta`.
        text: More text.
        thinking: More thoughts.
        signature: The signature, at the end of the thoughts.
        partial_json: More of the JSON text of a call's arguments.
    """

    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None


class BlockChange(MessagesEvent):
    """A block grows."""

    type: str = "content_block_delta"
    index: int
    delta: BlockDelta


class BlockStop(MessagesEvent):
    """A block is complete."""

    type: str = "content_block_stop"
    index: int


class MessageEnd(WireReply):
    """Why an answer ended, see `MessageReply`."""

    stop_reason: str | None = None
    stop_sequence: str | None = None


class MessageChange(MessagesEvent):
    """The answer has ended; `usage` counts all of it."""

    type: str = "message_delta"
    delta: MessageEnd
    usage: MessagesUsage
    mtplx: Report | None = None


class MessageStop(MessagesEvent):
    """The last event of a stream."""

    type: str = "message_stop"


class TokenCount(WireReply):
    """How many tokens a prompt has."""

    input_tokens: int


class AnthropicErrorDetail(WireReply):
    """What went wrong.

    Attributes:
        type: The kind of failure, for example `invalid_request_error`.
        message: For people; names the field at fault.
        details: For programs, where they can go on without what is refused.
    """

    type: str
    message: str
    details: dict[str, Any] | None = None


class AnthropicErrorReply(MessagesEvent):
    """The body of every reply with a status of 400 or more.

    Attributes:
        type: Always `error`.
        error: What went wrong.
        request_id: The same as the `request-id` header.
    """

    type: str = "error"
    error: AnthropicErrorDetail
    request_id: str | None = None
