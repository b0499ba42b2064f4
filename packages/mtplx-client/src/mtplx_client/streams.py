"""Joins the chunks of a streamed answer into the answer that would have come in one piece."""

from collections.abc import Iterable

from mtplx_client.errors import StreamInterrupted
from mtplx_client.wire.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatUsage,
    Choice,
    ReplyMessage,
    Report,
)


def accumulate(chunks: Iterable[ChatCompletionChunk]) -> ChatCompletion:
    """Join all chunks of one stream.

    Raises:
        StreamInterrupted: The chunks end without a finish reason.
    """
    text: list[str] = []
    reasoning: list[str] = []
    finish_reason: str | None = None
    usage: ChatUsage | None = None
    report: Report | None = None
    last: ChatCompletionChunk | None = None
    for last in chunks:
        usage = last.usage or usage
        report = last.mtplx or report
        for choice in last.choices:
            text.append(choice.delta.content or "")
            reasoning.append(choice.delta.reasoning_content or "")
            finish_reason = choice.finish_reason or finish_reason
    if last is None or finish_reason is None:
        raise StreamInterrupted("The stream ended without a finish reason.")
    message = ReplyMessage(
        role="assistant",
        content="".join(text),
        reasoning_content="".join(reasoning) or None,
    )
    return ChatCompletion(
        id=last.id,
        created=last.created,
        model=last.model,
        choices=[Choice(index=0, message=message, finish_reason=finish_reason)],
        usage=usage,
        mtplx=report,
    )
