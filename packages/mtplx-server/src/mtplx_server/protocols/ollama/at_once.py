"""Answers that need no model, whole or as a stream of one line."""

from collections.abc import Sequence
from dataclasses import dataclass

from mtplx_client.wire.base import WireReply
from mtplx_engine.events import ChatResult, Event, Started
from mtplx_server.errors import Problem
from mtplx_server.protocols.base import Frame
from mtplx_server.protocols.ollama.failing import error_reply


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Writes an answer that is known already."""

    answer: WireReply

    def reply(self, _: Sequence[ChatResult]) -> WireReply:
        """It."""
        return self.answer

    def stream(self) -> "OneLine":
        """A writer of it."""
        return OneLine(self.answer)


@dataclass(frozen=True, slots=True)
class OneLine:
    """Writes it as the only line of a stream."""

    answer: WireReply

    def open(self, _: Sequence[Started]) -> list[Frame]:
        """Nothing yet."""
        return []

    def feed(self, _: int, __: Event) -> list[Frame]:
        """Nothing: there are no events."""
        return []

    def idle(self) -> list[Frame]:
        """Nothing: there is no silence."""
        return []

    def close(self) -> list[Frame]:
        """The line."""
        return [Frame(self.answer.to_json())]

    def fail(self, problem: Problem) -> list[Frame]:
        """The error."""
        return [Frame(error_reply(problem, "").to_json())]
