"""What an engine looks like from outside: the surface that servers and tests program against.

Knows no MLX, so that a server can be built and tested over a scripted engine.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from mtplx_engine.caching import CacheStatus, Cleared
from mtplx_engine.info import EngineStatus, ModelInfo
from mtplx_engine.request import ChatRequest
from mtplx_engine.runtime.generation import Generation


class ChatEngine(Protocol):
    """Runs `ChatRequest`s. `mtplx_engine.Engine` is one, `testing.ScriptedEngine` another."""

    @property
    def model(self) -> ModelInfo:
        """What is being served."""

    def submit(self, request: ChatRequest) -> Generation:
        """Queue a request and return at once; safe from any thread.

        Raises:
            Overloaded: The queue is full.
            EngineFailed: The engine has stopped.
        """

    def submit_batch(self, requests: Sequence[ChatRequest], choices: int) -> tuple[Generation, ...]:
        """Queue some requests, all or none, for so many answers to each, in order.

        Raises:
            Overloaded: The queue is full.
            EngineFailed: The engine has stopped.
        """

    def count_tokens(self, request: ChatRequest) -> Future[int]:
        """Count what the prompt of a request costs, without running it.

        The count is that of `Started` for the same request. It may be more than the context
        window holds. What is wrong with the request is raised from the future.

        Raises:
            Overloaded: Too many are waiting to be counted.
            EngineFailed: The engine has stopped.
        """

    def status(self) -> EngineStatus:
        """State and load, without waiting for the model."""

    def cache_status(self) -> CacheStatus:
        """What the session cache holds, without waiting for the model."""

    def clear_session(self, session: str) -> Future[Cleared]:
        """Forget one conversation in both tiers; what others share with it stays.

        Answers that are being made go on, and are kept when they end.

        Raises:
            EngineFailed: The engine has stopped.
        """

    def clear_cache(self) -> Future[Cleared]:
        """Forget all conversations, in both tiers.

        Raises:
            EngineFailed: The engine has stopped.
        """

    def close(self, drain_s: float = 0.0) -> None:
        """Refuse new requests, let running ones finish for `drain_s` seconds, cancel the rest.

        Blocks until the engine has stopped; call it off the event loop.
        """
