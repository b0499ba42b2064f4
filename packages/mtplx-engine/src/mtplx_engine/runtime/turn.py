"""What the worker takes turns over, and who is told about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mtplx_engine.errors import Cancelled, EngineError
from mtplx_engine.runtime.generation import Generation
from mtplx_engine.runtime.mailbox import Mailbox


@dataclass(frozen=True, slots=True)
class Seat:
    """One reader of one answer.

    Attributes:
        mailbox: Where the items go.
        generation: Polled for cancellation.
        on_end: Called once when the answer has ended in any way.
    """

    mailbox: Mailbox
    generation: Generation
    on_end: Callable[[], None]

    @property
    def left(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.generation.cancelled

    def fail(self, error: EngineError) -> None:
        """End the answer with an error."""
        self.mailbox.put(error)
        self.on_end()

    def dismiss(self) -> None:
        """End an answer that nobody waits for."""
        self.fail(Cancelled("The generation was cancelled."))


class Turn(Protocol):
    """A piece of work that is done in steps, on the MLX thread.

    Attributes:
        seats: Whose answers it works on.
    """

    @property
    def seats(self) -> tuple[Seat, ...]:
        """Whose answers it works on."""

    def leave(self) -> None:
        """Nobody waits for the answers any more: give what was computed to the session cache."""

    def step(self) -> "tuple[Turn, ...]":
        """Do one unit of work.

        Returns:
            What is to be done next: itself, nothing when the answer has ended, or the turns that
            take over.

        Raises:
            EngineError: These answers fail.
        """
