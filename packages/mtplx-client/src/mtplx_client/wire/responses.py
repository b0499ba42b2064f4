"""`POST /v1/responses` and `POST /v1/responses/input_tokens`: what clients send.

The requests declare the fields that the server honours. Others are accepted as extra fields.
"""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from mtplx_client.wire.base import WireRequest
from mtplx_client.wire.options import BOUNDED, DecodingOptions, Strings


class InputPart(WireRequest):
    """A piece of an item.

    Attributes:
        type: `input_text`, `output_text`, `text`, `summary_text`, `reasoning_text` or `refusal`.
        text: What it says.
        refusal: The same, of a `refusal`.
    """

    type: str
    text: str | None = None
    refusal: str | None = None


InputParts = TypeAliasType("InputParts", Annotated[list[InputPart], *BOUNDED])


class InputFormat(WireRequest):
    """What the input of a custom tool must look like.

    Attributes:
        type: `text` or `grammar`.
        syntax: For `grammar`: `regex` or `lark`.
        definition: For `grammar`: its text.
    """

    type: str
    syntax: str | None = None
    definition: str | None = None


class ResponsesTool(WireRequest):
    """A tool, or several of them under one name.

    Attributes:
        type: `function`, `custom` or `namespace`; others run on a vendor's servers only.
        name: Letters, digits and `_ - . : /`.
        description: What it does, for the model.
        parameters: Of a function: JSON schema of its arguments, an object; None: it takes none.
        strict: Of a function: whether calls must keep to the schema.
        format: Of a custom tool: what its input must look like.
        tools: Of a namespace: its functions and custom tools.
    """

    type: str
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    format: InputFormat | None = None
    tools: "ResponsesTools | None" = None


ResponsesTools = TypeAliasType("ResponsesTools", Annotated[list[ResponsesTool], *BOUNDED])


class InputItem(WireRequest):
    """A piece of the conversation; which fields count depends on its type.

    Attributes:
        type: `message`, also when absent; `function_call`, `function_call_output`,
            `custom_tool_call`, `custom_tool_call_output`, `reasoning` or `additional_tools`.
        role: Of a message: `user`, `assistant`, `system`, or `developer`, which is the same.
        content: Of a message its text, or parts of it; of reasoning its parts.
        call_id: Of a call, and of its output.
        name: Of a call: the tool.
        namespace: Of a call: the namespace of the tool, if it has one.
        arguments: Of a function call: JSON text of an object.
        input: Of a custom call.
        output: Of a call's output: text, or parts of it.
        summary: Of reasoning: counts where there is no content.
        encrypted_content: Of reasoning: counts where there is nothing else, and it is ours.
        tools: Of `additional_tools`.
    """

    type: str | None = None
    role: str | None = None
    content: str | InputParts | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: str | None = None
    input: str | None = None
    output: str | InputParts | None = None
    summary: InputParts | None = None
    encrypted_content: str | None = None
    tools: ResponsesTools | None = None


InputItems = TypeAliasType("InputItems", Annotated[list[InputItem], *BOUNDED])


class TextFormat(WireRequest):
    """What an answer must look like.

    Attributes:
        type: `text`, `json_object` or `json_schema`.
        name: For people; not used.
        description: For people; not used.
        schema_: For `json_schema`: the schema; `schema` on the wire.
        strict: Not used: the schema is always kept to.
    """

    type: str
    name: str | None = None
    description: str | None = None
    schema_: dict[str, Any] | bool | None = Field(None, alias="schema")
    strict: bool | None = None


class TextOptions(WireRequest):
    """Options of the answer's text.

    Attributes:
        format: What it must look like.
        verbosity: The served models have no levels.
    """

    format: TextFormat | None = None
    verbosity: str | None = None


class ReasoningOptions(WireRequest):
    """Options of thinking.

    Attributes:
        effort: How much, where the model has levels.
        summary: Thoughts come whole, never as a summary.
        generate_summary: An older name of `summary`.
    """

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None


class PromptOptions(WireRequest):
    """What the model reads.

    Attributes:
        model: Any name is answered by the served model, unless the server is strict about it.
        input: A text, or the items of a conversation; may be empty.
        instructions: A system message that comes before all of the input.
        tools: Functions, custom tools and namespaces of them, for the client to run.
        tool_choice: `auto`, `none`, `required`, one function or custom tool, or `allowed_tools`.
        parallel_tool_calls: Whether one answer may hold several calls.
        reasoning: `effort` is how much to think, where the model has levels.
        text: `format` is what the answer must look like: `text`, `json_object` or `json_schema`.
        chat_template_kwargs: Variables for the chat template, for example `enable_thinking`.
            (Extension)
    """

    model: str | None = None
    input: str | InputItems | None = None
    instructions: str | None = None
    tools: ResponsesTools | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningOptions | None = None
    text: TextOptions | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class InputTokensRequest(PromptOptions):
    """What to count."""


class ResponsesRequest(PromptOptions, DecodingOptions):
    """What to generate. A field that is None takes the model's own default.

    Attributes:
        max_output_tokens: At most so many tokens, reasoning included.
        include: `reasoning.encrypted_content` and `message.output_text.logprobs` add these.
        top_logprobs: So many of the likeliest tokens beside each; 0 to 20, needs `include`.
        metadata: Comes back as it is.
        stream: Send the answer in events as it is made.
    """

    max_output_tokens: int | None = None
    include: Strings | None = None
    top_logprobs: int | None = None
    metadata: dict[str, Any] | None = None
    stream: bool | None = None
