"""Everything the engine raises.

    EngineError
    ├── InvalidRequest        a field of the request is wrong; `param` names it
    │   └── ContextOverflow   prompt and answer do not fit the context window
    ├── ModelError            a model cannot be served
    │   ├── ModelNotFound     there is no such folder, hub id or cached copy
    │   └── ModelInvalid      the folder is there, its contents are not a model we can load
    ├── Overloaded            the queue is full; try again after `retry_after_s`
    ├── InsufficientMemory    the request needs more memory than this process may take
    ├── Cancelled             somebody called `Generation.cancel`
    ├── NonFiniteLogits       the model produced NaN or infinity for this request
    └── EngineFailed          the engine thread is gone; no request can be served

A failure of one request is raised from its `Generation`; the engine goes on. `EngineFailed` is
raised from every `Generation` and from `Engine.submit`.
"""


class EngineError(Exception):
    """Base of all errors of this package. The message is meant for the person who asked."""


class InvalidRequest(EngineError):
    """The request cannot be served as it stands.

    Attributes:
        param: Dotted name of the field at fault, or None when it is the combination.
    """

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class ContextOverflow(InvalidRequest):
    """The prompt leaves no room for an answer in the context window."""

    def __init__(
        self, prompt_tokens: int, limit: int, param: str = "messages", *, exact: bool = True
    ) -> None:
        """Say so.

        Args:
            prompt_tokens: Length of the prompt.
            limit: Of the context window.
            param: The field that holds the prompt.
            exact: Whether the prompt was tokenised; if not, it has so many tokens or more.
        """
        super().__init__(
            f"This model's maximum context length is {limit} tokens, but the prompt has"
            f" {'' if exact else 'at least '}{prompt_tokens} tokens and at least one is needed for"
            " the answer."
            f" Shorten the {param}.",
            param=param,
        )
        self.prompt_tokens = prompt_tokens
        self.limit = limit


class ModelError(EngineError):
    """A model cannot be served."""


class ModelNotFound(ModelError):
    """Nothing of that name is on this machine or can be fetched."""


class ModelInvalid(ModelError):
    """The files are there but are not a model that can be loaded; the message names the file."""


class Overloaded(EngineError):
    """The queue is full.

    Attributes:
        retry_after_s: Seconds after which another attempt is sensible.
    """

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class InsufficientMemory(EngineError):
    """The request needs more memory than this process may take.

    Attributes:
        needed: Bytes that must be free before it is begun.
        available: Bytes that were.
    """

    def __init__(
        self, *, needed: int, available: int, prompt_tokens: int, answer_tokens: int
    ) -> None:
        super().__init__(
            f"Reading {prompt_tokens} tokens and writing {answer_tokens} takes about"
            f" {_size(needed)} of memory, but only {_size(available)} is available. Shorten the"
            " prompt, ask for a smaller max_tokens, or close other programs."
        )
        self.needed = needed
        self.available = available


def _size(count: int) -> str:
    """Bytes for people, in the decimal units that system monitors use."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


class Cancelled(EngineError):
    """The generation was cancelled by its owner."""


class NonFiniteLogits(EngineError):
    """The model's output was NaN or infinite, so no token can be drawn from it."""


class EngineFailed(EngineError):
    """The engine has stopped, by a fault of its own or by `close`."""
