"""A streamed answer: its head, block after block, its end."""

import json
from collections.abc import Sequence
from typing import Literal, assert_never

from mtplx_client.wire.anthropic import (
    BlockChange,
    BlockDelta,
    BlockStart,
    BlockStop,
    MessageChange,
    MessageEnd,
    MessagesEvent,
    MessageStart,
    MessageStop,
    Ping,
    ReplyBlock,
)
from mtplx_engine.events import (
    CallBroken,
    CallDelta,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    PrefillProgress,
    PromptScored,
    ReasoningDelta,
    Started,
    TextDelta,
    TokensScored,
)
from mtplx_server.errors import Problem
from mtplx_server.protocols.anthropic_messages.blocks import SIGNATURE, call_id
from mtplx_server.protocols.anthropic_messages.error import error_reply
from mtplx_server.protocols.anthropic_messages.heading import Heading, usage
from mtplx_server.protocols.arguments import values
from mtplx_server.protocols.base import Frame
from mtplx_server.protocols.report import Counts

_Kind = Literal["text", "thinking"]
_EMPTY = {
    "text": ReplyBlock(type="text", text=""),
    "thinking": ReplyBlock(type="thinking", thinking="", signature=""),
}


class MessagesStream:
    """Writes one. A call is shown when it is complete, so that nobody runs one that is cut."""

    def __init__(self, heading: Heading) -> None:
        self._heading = heading
        self._open: _Kind | None = None
        self._index = 0  # of the open block; without one, of the next
        self._name = ""
        self._arguments: list[str] = []

    def open(self, started: Sequence[Started]) -> list[Frame]:
        """The head of the message, as soon as the prompt is accepted."""
        counts = usage(Counts(prompt=started[0].prompt_tokens))
        message = self._heading.message([], **self._heading.end(None), usage=counts)
        start = MessageStart(type="message_start", message=message)
        return [_frame(start), _frame(Ping(type="ping"))]

    def feed(self, choice: int, event: Event) -> list[Frame]:
        """What an event makes of the open block and of the next ones."""
        match event:
            case TextDelta(text):
                return [*self._begin("text"), self._grow("text", text)]
            case ReasoningDelta(text):
                return [*self._begin("thinking"), self._grow("thinking", text)]
            case CallStarted(_, name):
                self._name, self._arguments = name, []
            case CallDelta(_, text):
                self._arguments.append(text)
            case CallEnded():
                return self._call()
            case Finished():
                return [*self._end(), self._finish(event)]
            case Started() | PrefillProgress() | PromptScored() | TokensScored() | CallBroken():
                pass
            case _:
                assert_never(event)
        return []

    def idle(self) -> list[Frame]:
        """A change that changes nothing; there are clients that take no other sign of life.

        An empty block is begun only before all others: after them it would stay in the answer.
        """
        if self._open is None and self._index:
            return [_frame(Ping(type="ping"))]
        kind = self._open or ("thinking" if self._heading.thinks else "text")
        return [*self._begin(kind), self._grow(kind, "")]

    def close(self) -> list[Frame]:
        """The end mark."""
        return [_frame(MessageStop(type="message_stop"))]

    def fail(self, problem: Problem) -> list[Frame]:
        """The error, which is the end."""
        return [_frame(error_reply(problem, self._heading.asked.request_id))]

    def _begin(self, kind: _Kind) -> list[Frame]:
        """See that a block of a kind is open."""
        if self._open == kind:
            return []
        ended = self._end()
        self._open = kind
        return [*ended, self._start(_EMPTY[kind])]

    def _grow(self, kind: _Kind, text: str) -> Frame:
        if kind == "text":
            return self._change(BlockDelta(type="text_delta", text=text))
        return self._change(BlockDelta(type="thinking_delta", thinking=text))

    def _end(self) -> list[Frame]:
        """See that no block is open."""
        if self._open is None:
            return []
        signature = BlockDelta(type="signature_delta", signature=SIGNATURE)
        signed = [self._change(signature)] if self._open == "thinking" else []
        self._open = None
        return [*signed, self._stop()]

    def _call(self) -> list[Frame]:
        ended = self._end()
        block = ReplyBlock(type="tool_use", id=call_id(), name=self._name, input={})
        given = json.dumps(values("".join(self._arguments)), ensure_ascii=False)
        arguments = BlockDelta(type="input_json_delta", partial_json=given)
        return [*ended, self._start(block), self._change(arguments), self._stop()]

    def _start(self, block: ReplyBlock) -> Frame:
        start = BlockStart(type="content_block_start", index=self._index, content_block=block)
        return _frame(start)

    def _change(self, delta: BlockDelta) -> Frame:
        return _frame(BlockChange(type="content_block_delta", index=self._index, delta=delta))

    def _stop(self) -> Frame:
        frame = _frame(BlockStop(type="content_block_stop", index=self._index))
        self._index += 1
        return frame

    def _finish(self, finished: Finished) -> Frame:
        end = MessageEnd(**self._heading.end(finished))
        return _frame(
            MessageChange(type="message_delta", delta=end, **self._heading.counts(finished))
        )


def _frame(event: MessagesEvent) -> Frame:
    return Frame(event.to_json(), event.type)
