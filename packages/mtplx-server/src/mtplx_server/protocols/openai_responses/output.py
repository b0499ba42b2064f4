"""The items of a response."""

from collections.abc import Sequence

from mtplx_client.wire.chat import TokenLogprob
from mtplx_client.wire.responses_output import (
    CustomCallItem,
    FunctionCallItem,
    MessageItem,
    OutputPart,
    ReasoningItem,
)
from mtplx_server.protocols.arguments import values
from mtplx_server.protocols.openai_responses.sealed import sealed
from mtplx_server.protocols.openai_responses.toolbox import INPUT, Known


def text_part(text: str, scores: Sequence[TokenLogprob] = ()) -> OutputPart:
    """What was said."""
    return OutputPart(type="output_text", text=text, annotations=[], logprobs=list(scores))


def thought_part(text: str) -> OutputPart:
    """What was thought."""
    return OutputPart(type="reasoning_text", text=text)


def message_item(item_id: str, content: Sequence[OutputPart], status: str) -> MessageItem:
    """A message."""
    return MessageItem(
        id=item_id, type="message", status=status, role="assistant", content=list(content)
    )


def reasoning_item(
    item_id: str, content: Sequence[OutputPart], status: str, *, seals: bool
) -> ReasoningItem:
    """Thoughts; once there are any, also in the form that clients send back, if it seals."""
    text = "".join(part.text for part in content)
    return ReasoningItem(
        id=item_id,
        type="reasoning",
        summary=[],
        content=list(content),
        encrypted_content=sealed(text) if seals and text else None,
        status=status,
    )


def call_item(
    item_id: str, call_id: str, tool: Known, arguments: str, status: str
) -> FunctionCallItem | CustomCallItem:
    """A call, named as the client names it."""
    namespace = {} if tool.namespace is None else {"namespace": tool.namespace}
    if tool.kind == "function":
        return FunctionCallItem(
            id=item_id,
            type="function_call",
            call_id=call_id,
            name=tool.name,
            **namespace,
            arguments=arguments,
            status=status,
        )
    return CustomCallItem(
        id=item_id,
        type="custom_tool_call",
        call_id=call_id,
        name=tool.name,
        **namespace,
        input=input_of(arguments),
        status=status,
    )


def input_of(arguments: str) -> str:
    """The text that a custom tool is called with; what the model wrote, where there is none."""
    try:
        found = values(arguments)[INPUT]
    except (ValueError, TypeError, KeyError):
        return arguments
    return found if isinstance(found, str) else arguments
