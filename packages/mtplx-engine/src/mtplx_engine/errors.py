"""Everything the engine raises.

    EngineError
    ├── InvalidRequest        a field of the request is wrong; `param` names it
    │   └── ContextOverflow   prompt and answer do not fit the context window
    ├── ModelError            a model cannot be served
    │   ├── ModelNotFound     there is no such folder, hub id or cached copy
    │   └── ModelInvalid      the folder is there, its contents are not a model we can load
    ├── Overloaded            the queue is full; try again after `retry_after_s`
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

    def __init__(self, prompt_tokens: int, limit: int) -> None:
        super().__init__(
            f"This model's maximum context length is {limit} tokens, but the prompt has"
            f" {prompt_tokens} tokens and at least one is needed for the answer."
            " Shorten the messages.",
            param="messages",
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


class Cancelled(EngineError):
    """The generation was cancelled by its owner."""


class NonFiniteLogits(EngineError):
    """The model's output was NaN or infinite, so no token can be drawn from it."""


class EngineFailed(EngineError):
    """The engine has stopped, by a fault of its own or by `close`."""
