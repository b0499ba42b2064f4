"""Joins the chunks of streamed answers into the answers that would have come in one piece."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mtplx_client.errors import StreamInterrupted
from mtplx_client.wire.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    Choice,
    ChoiceLogprobs,
    ChunkChoice,
    FunctionCall,
    ReplyMessage,
    TokenLogprob,
    ToolCall,
)
from mtplx_client.wire.usage import Report, Usage


def accumulate(chunks: Iterable[ChatCompletionChunk]) -> ChatCompletion:
    """Join all chunks of one stream.

    Raises:
        StreamInterrupted: The chunks end before every answer has a finish reason.
    """
    answers: dict[int, _Answer] = {}
    usage: Usage | None = None
    report: Report | None = None
    last: ChatCompletionChunk | None = None
    for last in chunks:
        usage = last.usage or usage
        report = last.mtplx or report
        for choice in last.choices:
            answers.setdefault(choice.index, _Answer()).add(choice)
    if last is None or not answers or any(not each.finish_reason for each in answers.values()):
        raise StreamInterrupted("The stream ended without a finish reason.")
    return ChatCompletion(
        id=last.id,
        created=last.created,
        model=last.model,
        choices=[answers[at].choice(at) for at in sorted(answers)],
        usage=usage,
        mtplx=report,
    )


@dataclass(slots=True)
class _Answer:
    """What has come of one answer."""

    text: str = ""
    reasoning: str = ""
    calls: dict[int, ToolCall] = field(default_factory=dict)
    scores: list[TokenLogprob] | None = None
    finish_reason: str | None = None

    def add(self, choice: ChunkChoice) -> None:
        self.text += choice.delta.content or ""
        self.reasoning += choice.delta.reasoning_content or ""
        for piece in choice.delta.tool_calls or ():
            self._add_call(piece)
        if choice.logprobs is not None and choice.logprobs.content is not None:
            self.scores = (self.scores or []) + choice.logprobs.content
        self.finish_reason = choice.finish_reason or self.finish_reason

    def _add_call(self, piece: ToolCall) -> None:
        at = piece.index or 0
        so_far = self.calls.get(at)
        before = so_far.function if so_far and so_far.function else FunctionCall()
        now = piece.function or FunctionCall()
        self.calls[at] = ToolCall(
            id=piece.id or (so_far.id if so_far else None),
            type="function",
            function=FunctionCall(
                name=now.name or before.name,
                arguments=(before.arguments or "") + (now.arguments or ""),
            ),
        )

    def choice(self, index: int) -> Choice:
        calls = [self.calls[at] for at in sorted(self.calls)]
        message = ReplyMessage(
            role="assistant",
            content=self.text or (None if calls else ""),
            reasoning_content=self.reasoning or None,
            tool_calls=calls or None,
        )
        scores = None if self.scores is None else ChoiceLogprobs(content=self.scores)
        return Choice(
            index=index, message=message, finish_reason=self.finish_reason, logprobs=scores
        )
