"""What can go wrong, and how it looks from outside, once for all protocols.

    ServerError
    ├── InvalidSetting        a setting makes no sense
    ├── AddressInUse          somebody else listens on that port
    ├── AddressRefused        that address is not, or must not be, ours to listen on
    └── RequestRefused        the server refuses a request by itself; carries its `Problem`

`problem_of` turns these and the engine's errors into a `Problem`; each protocol renders a `Problem`
in its own envelope.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from mtplx_engine.errors import (
    Cancelled,
    ContextOverflow,
    EngineFailed,
    InsufficientMemory,
    InvalidRequest,
    NonFiniteLogits,
    Overloaded,
)

Kind = Literal["invalid_request_error", "server_error"]

_ENGINE_RETRY_S = 5
_LONGEST = 1000  # characters of a message, and of the name of a field


class Overflow(NamedTuple):
    """A prompt that does not fit: its length or at least so many, and the window, in tokens."""

    prompt_tokens: int
    context_length: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A failure as the client is told of it.

    Attributes:
        status: HTTP status.
        kind: Whose fault it is.
        message: For people; never holds a traceback. It may quote what was sent, so a long one is
            cut in its middle, and so is `param`.
        code: A word for programs, or None.
        param: The request field at fault, or None.
        retry_after_s: Seconds after which another attempt is sensible, or None.
        allow: Methods that the path does have, when this one is not among them.
        overflow: The numbers, when the prompt does not fit; protocols word it differently.
    """

    status: int
    kind: Kind
    message: str
    code: str | None = None
    param: str | None = None
    retry_after_s: int | None = None
    allow: tuple[str, ...] = ()
    overflow: Overflow | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", _shortened(self.message))
        if self.param is not None:
            object.__setattr__(self, "param", _shortened(self.param))


def _shortened(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} ... {text[-half:]}"


class ServerError(Exception):
    """Base of all errors of this package. The message is meant for the person who asked."""


class InvalidSetting(ServerError, ValueError):
    """A setting makes no sense; the message names it."""


class AddressInUse(ServerError):
    """Somebody else listens on that port."""


class AddressRefused(ServerError):
    """The address cannot be listened on, or must not be."""


class RequestRefused(ServerError):
    """The server refuses a request by itself, without the engine."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def bad_request(message: str, *, param: str | None = None, code: str | None = None) -> Exception:
    """The exception for a request that cannot be served as it stands."""
    return RequestRefused(Problem(400, "invalid_request_error", message, code, param))


def unknown_model(name: str, served: str) -> Exception:
    """The exception for a model that is not the served one."""
    message = f"The model {name!r} does not exist; this server serves {served!r}."
    return RequestRefused(
        Problem(404, "invalid_request_error", message, "model_not_found", "model")
    )


def problem_of(error: BaseException) -> Problem:
    """How a failure looks from outside. What is not foreseen is a 500 that tells nothing."""
    match error:
        case RequestRefused(problem=problem):
            return problem
        case ContextOverflow(prompt_tokens=tokens, limit=limit):
            return Problem(
                400,
                "invalid_request_error",
                str(error),
                "context_length_exceeded",
                error.param,
                overflow=Overflow(tokens, limit),
            )
        case InvalidRequest():
            return Problem(400, "invalid_request_error", str(error), None, error.param)
        case Overloaded(retry_after_s=after):
            return Problem(
                503, "server_error", str(error), "server_overloaded", retry_after_s=after
            )
        case EngineFailed():
            after = _ENGINE_RETRY_S
            return Problem(503, "server_error", str(error), "engine_failed", retry_after_s=after)
        case Cancelled():
            after = _ENGINE_RETRY_S
            return Problem(503, "server_error", str(error), "cancelled", retry_after_s=after)
        case InsufficientMemory():
            return Problem(507, "server_error", str(error), "insufficient_memory")
        case NonFiniteLogits():
            return Problem(500, "server_error", str(error), "non_finite_logits")
        case _:
            message = "The server failed on this request; its log says why."
            return Problem(500, "server_error", message, "internal_error")
