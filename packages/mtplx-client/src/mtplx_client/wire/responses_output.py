"""`POST /v1/responses` and `POST /v1/responses/input_tokens`: what the server answers."""

from typing import Any, Literal

from pydantic import Field

from mtplx_client.wire.base import WireReply
from mtplx_client.wire.chat import TokenLogprob
from mtplx_client.wire.usage import Report


class OutputPart(WireReply):
    """A piece of an item: `output_text`, with what belongs to it, or `reasoning_text`.

    Attributes:
        type: Which of both.
        text: What it says.
        annotations: Of `output_text`; always empty.
        logprobs: Of `output_text`: the tokens drawn since the item before, where asked for.
    """

    type: str
    text: str
    annotations: list[Any] | None = None
    logprobs: list[TokenLogprob] | None = None


class ReasoningItem(WireReply):
    """What the model thought.

    Attributes:
        id: Of the item.
        type: Always `reasoning`.
        summary: Always empty.
        content: Its text, whole.
        encrypted_content: The same in a form that clients keep and send back; None unless asked
            for.
        status: `in_progress`, `completed` or `incomplete`.
    """

    id: str
    type: Literal["reasoning"]
    summary: list[Any]
    content: list[OutputPart]
    encrypted_content: str | None = None
    status: str


class MessageItem(WireReply):
    """What the model said."""

    id: str
    type: Literal["message"]
    status: str
    role: str
    content: list[OutputPart]


class FunctionCallItem(WireReply):
    """A call of a function.

    Attributes:
        id: Of the item.
        type: Always `function_call`.
        call_id: What the item with the output refers to.
        name: Of the function.
        namespace: Of the function, if it has one.
        arguments: JSON text of an object; a part of one when the status is `incomplete`.
        status: `in_progress`, `completed` or `incomplete`.
    """

    id: str
    type: Literal["function_call"]
    call_id: str
    name: str
    namespace: str | None = None
    arguments: str
    status: str


class CustomCallItem(WireReply):
    """A call of a custom tool; when it is incomplete, `input` is what the model wrote of it."""

    id: str
    type: Literal["custom_tool_call"]
    call_id: str
    name: str
    namespace: str | None = None
    input: str
    status: str


OutputItem = ReasoningItem | MessageItem | FunctionCallItem | CustomCallItem


class InputTokensDetails(WireReply):
    """Of the prompt's tokens, those that were not computed again, and those kept for later."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(WireReply):
    """Of the answer's tokens, those that were reasoning."""

    reasoning_tokens: int = 0


class ResponseUsage(WireReply):
    """Token counts."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ResponseError(WireReply):
    """Why a response failed: a word for programs, and a message for people."""

    code: str
    message: str


class Response(WireReply):
    """An answer, whole or as far as it has come, and the settings that it was asked with.

    Attributes:
        id: Of the response.
        object: Always `response`.
        created_at: Unix time of the request.
        completed_at: Unix time of the end; None unless the status is `completed`.
        status: `in_progress`, `completed`, `incomplete` or `failed`.
        error: Why it failed.
        incomplete_details: Why it is incomplete: its `reason` is `max_output_tokens`.
        model: Id of the served model.
        output: Thoughts, text and calls.
        usage: Token counts; None before the end.
        mtplx: How it was made; only at the end.
    """

    id: str
    object: str = "response"
    created_at: int
    completed_at: int | None = None
    status: str
    error: ResponseError | None = None
    incomplete_details: dict[str, str] | None = None
    model: str
    output: list[OutputItem]
    instructions: str | None = None
    tools: list[dict[str, Any]] = Field(default_factory=list)
    tool_choice: str | dict[str, Any] = "auto"
    parallel_tool_calls: bool = True
    text: dict[str, Any] = Field(default_factory=dict)
    reasoning: dict[str, Any] | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    top_logprobs: int | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    truncation: str = "disabled"
    store: bool = False
    background: bool = False
    previous_response_id: str | None = None
    service_tier: str = "default"
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    user: str | None = None
    usage: ResponseUsage | None = None
    mtplx: Report | None = None


class InputTokens(WireReply):
    """How many tokens a prompt has."""

    object: str = "response.input_tokens"
    input_tokens: int


class ResponseEvent(WireReply):
    """The state of the whole: `response.created`, `.in_progress`, or how it ended."""

    type: str
    sequence_number: int
    response: Response


class ItemEvent(WireReply):
    """`response.output_item.added` or `.done`."""

    type: str
    sequence_number: int
    output_index: int
    item: OutputItem


class PartEvent(WireReply):
    """`response.content_part.added` or `.done`."""

    type: str
    sequence_number: int
    item_id: str
    output_index: int
    content_index: int
    part: OutputPart


class TextEvent(WireReply):
    """More text of a part, or all of it: `response.output_text.*`, `response.reasoning_text.*`.

    Attributes:
        type: Ends in `delta` or `done`.
        sequence_number: Rises by one with each event.
        item_id: The item.
        output_index: Its place in the output.
        content_index: The place of the part in the item.
        delta: What is new.
        text: All of it, at its end.
        logprobs: Of output text: those of the tokens drawn since the delta before, or all.
    """

    type: str
    sequence_number: int
    item_id: str
    output_index: int
    content_index: int
    delta: str | None = None
    text: str | None = None
    logprobs: list[TokenLogprob] | None = None


class CallEvent(WireReply):
    """More of a call: `response.function_call_arguments.*`, `response.custom_tool_call_input.*`.

    Attributes:
        type: Ends in `delta` or `done`.
        sequence_number: Rises by one with each event.
        item_id: The item.
        output_index: Its place in the output.
        delta: What is new.
        arguments: All of a function's arguments, at their end.
        input: All of a custom tool's input, at its end.
    """

    type: str
    sequence_number: int
    item_id: str
    output_index: int
    delta: str | None = None
    arguments: str | None = None
    input: str | None = None


class FailureEvent(WireReply):
    """What went wrong, before `response.failed`."""

    type: Literal["error"]
    sequence_number: int
    code: str | None = None
    message: str
    param: str | None = None
