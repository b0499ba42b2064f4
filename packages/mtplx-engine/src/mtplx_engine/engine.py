"""The engine: opens a model and runs requests on it, for callers on any thread."""

import atexit
import functools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from mtplx_engine.caching import CacheStatus, Cleared, KVSetting, SessionCacheOptions
from mtplx_engine.errors import (
    Cancelled,
    EngineError,
    EngineFailed,
    InvalidRequest,
    ModelError,
    Overloaded,
)
from mtplx_engine.info import EngineState, EngineStatus, LoadProgress, ModelInfo, OnLoadProgress
from mtplx_engine.request import Acceptance, ChatRequest
from mtplx_engine.runtime.generation import Generation
from mtplx_engine.runtime.mailbox import Mailbox, Opened
from mtplx_engine.runtime.turn import Seat

if TYPE_CHECKING:
    from mtplx_engine.models.loaded import LoadedModel
    from mtplx_engine.runtime.prepare import Preparer
    from mtplx_engine.runtime.worker import Worker

T = TypeVar("T")

_PREPARE_THREADS = 2


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What to open and how to run it.

    Attributes:
        model: A model folder, a Hugging Face id, or None for the embedded default.
        mtp: `on` drafts whatever the load-time probe says and fails when there is no head; `off`
            never drafts; `auto` drafts when there is a head that works.
        depth: Tokens drafted per round; None drafts as many as pays, 0 decodes plainly.
        acceptance: The rule for requests that do not ask for one; see `ChatRequest`.
        copy_lane: Whether drafts may be copied from earlier text where that pays.
        max_active: Requests that take turns; the rest wait.
        queue_limit: Requests that may wait; more are refused.
        prefill_chunk: Tokens of a prompt read in one step.
        session_cache: What is kept for the next turn of a conversation.
        kv_quant: How keys and values are quantised for requests that do not say.
    """

    model: str | None = None
    mtp: Literal["auto", "on", "off"] = "auto"
    depth: int | None = None
    acceptance: Acceptance = "auto"
    copy_lane: bool = True
    max_active: int = 4
    queue_limit: int = 64
    prefill_chunk: int = 512
    session_cache: SessionCacheOptions = field(default_factory=SessionCacheOptions)
    kv_quant: KVSetting = "off"

    def __post_init__(self) -> None:
        for name in ("max_active", "prefill_chunk"):
            if getattr(self, name) < 1:
                raise InvalidRequest(f"{name} must be 1 or more.", name)
        for name in ("depth", "queue_limit"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidRequest(f"{name} must be 0 or more.", name)


class Engine:
    """One loaded model. Open it with `Engine.open`, as a context manager or with `close`.

    `submit`, `status`, `call` and `close` are safe from any thread.
    """

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._running: set[Generation] = set()
        self._completed = 0
        self._counting = 0
        self._state: EngineState = "ready"
        self._reason = ""
        self._pool = ThreadPoolExecutor(_PREPARE_THREADS, thread_name_prefix="mtplx-prepare")
        self._worker: Worker
        self._preparer: Preparer

    @classmethod
    def open(
        cls, options: EngineOptions | None = None, *, on_progress: OnLoadProgress | None = None
    ) -> Self:
        """Find, load and probe a model; returns when it is ready.

        Args:
            options: What to open; the embedded default when None.
            on_progress: Told how far it has come; called on several threads, one at a time.

        Raises:
            ModelError: The model cannot be served; the message says why and what to do.
        """
        engine = cls(options or EngineOptions())
        try:
            engine._start(on_progress or _ignore)
        except BaseException:
            engine._pool.shutdown(wait=False, cancel_futures=True)
            if (worker := getattr(engine, "_worker", None)) is not None:  # else not come that far
                worker.stop()
            raise
        return engine

    def _start(self, on_progress: OnLoadProgress) -> None:
        # Imported here, so that importing the package stays free of MLX.
        from mtplx_engine.chat.grammar import Grammars  # noqa: PLC0415
        from mtplx_engine.models.load import load  # noqa: PLC0415
        from mtplx_engine.models.locate import locate  # noqa: PLC0415
        from mtplx_engine.runtime.prepare import Preparer  # noqa: PLC0415
        from mtplx_engine.runtime.worker import Worker  # noqa: PLC0415

        options = self._options
        # On this thread, so that an interrupt ends a download and cleans up after it.
        located = locate(options.model, on_progress=on_progress)
        on_progress(LoadProgress("load", f"{located.id}: {located.why}"))

        def open_model() -> "LoadedModel":
            model = load(located, mtp=options.mtp, depth=options.depth, on_progress=on_progress)
            if options.kv_quant != "off" and not model.info.kv_groups:
                text = f"kv_quant {options.kv_quant} is not possible with {located.id}"
                raise ModelError(f"{text}: {model.info.kv_obstacle}.")
            return model

        self._worker = Worker(
            open_model,
            max_active=options.max_active,
            prefill_chunk=options.prefill_chunk,
            on_failure=self._failed,
        )
        model = self._worker.start()
        self._preparer = Preparer(
            tokenizer=model.tokenizer,
            template=model.template,
            info=model.info,
            defaults=model.defaults,
            acceptance=options.acceptance,
            copy_lane=options.copy_lane and options.depth != 0,
            kv_quant=options.kv_quant,
            end_tokens=model.end_tokens,
            vocabulary=model.vocabulary,
            grammars=functools.cache(
                lambda: Grammars(
                    model.tokenizer, vocabulary=model.vocabulary, end_tokens=model.end_tokens
                )
            ),
            longest_token=max(map(len, model.tokenizer.get_vocab())),
        )
        # A thread that still computes while the interpreter shuts down would abort the process.
        atexit.register(self.close)

    @property
    def model(self) -> ModelInfo:
        """What is being served."""
        return self._preparer.info

    def submit(self, request: ChatRequest) -> Generation:
        """Queue a request and return at once; see `submit_choices`."""
        return self.submit_choices(request, 1)[0]

    def submit_choices(self, request: ChatRequest, count: int) -> tuple[Generation, ...]:
        """Queue a request for several answers; see `submit_batch`."""
        return self.submit_batch((request,), count)

    def submit_batch(self, requests: Sequence[ChatRequest], choices: int) -> tuple[Generation, ...]:
        """Queue some requests, all or none, for so many answers to each.

        Answers to one request share the reading of its prompt. Each has its own randomness; the
        first is that of `submit`. What is wrong with a request itself is raised from its
        generations, since rendering and tokenising happen on another thread.

        Returns:
            The answers to the first request, then those to the second, and so on.

        Raises:
            InvalidRequest: There is nothing to generate.
            Overloaded: The queue is full.
            EngineFailed: The engine has stopped.
        """
        if choices < 1 or not requests:
            raise InvalidRequest(f"n must be 1 or more; got {choices}.", "n")
        seats = [tuple(self._seat() for _ in range(choices)) for _ in requests]
        generations = tuple(seat.generation for each in seats for seat in each)
        with self._lock:
            if self._state != "ready":
                raise EngineFailed(self._reason)
            limit = self._options.max_active + self._options.queue_limit
            if len(self._running) + len(generations) > max(limit, len(generations)):
                raise Overloaded(
                    f"{len(self._running)} requests are running or waiting, which is the limit."
                    " Try again in a moment."
                )
            self._running.update(generations)
            for request, each in zip(requests, seats, strict=True):
                self._pool.submit(self._prepare, request, each, time.perf_counter())
        return generations

    def count_tokens(self, request: ChatRequest) -> Future[int]:
        """Count what the prompt of a request costs, without running it.

        The count is that of `Started` for the same request. It may be more than the context
        window holds. What is wrong with the request is raised from the future.

        Raises:
            Overloaded: Too many are waiting to be counted.
            EngineFailed: The engine has stopped.
        """
        with self._lock:
            if self._state != "ready":
                raise EngineFailed(self._reason)
            if self._counting >= self._options.max_active + self._options.queue_limit:
                raise Overloaded(f"{self._counting} prompts are waiting to be counted.")
            self._counting += 1
            future = self._pool.submit(self._preparer.count, request)
        future.add_done_callback(self._counted)
        return future

    def _counted(self, _: Future[int]) -> None:
        with self._lock:
            self._counting -= 1

    def _seat(self) -> Seat:
        mailbox = Mailbox()
        generation = Generation(mailbox)
        return Seat(mailbox, generation, lambda: self._end(generation))

    def _prepare(self, request: ChatRequest, seats: tuple[Seat, ...], submitted: float) -> None:
        from mtplx_engine.runtime.worker import Job  # noqa: PLC0415

        try:
            if all(seat.left for seat in seats):
                raise Cancelled("The generation was cancelled.")
            prepared = self._preparer.prepare(request, len(seats))
        except EngineError as error:
            _fail(seats, error)
        except BaseException as error:  # whatever it was, the readers must not wait for ever
            failure = EngineError(f"The request could not be prepared: {error!r}")
            failure.__cause__ = error
            _fail(seats, failure)
        else:
            for seat in seats:
                seat.mailbox.put(Opened(len(prepared.tokens), prepared.form, prepared.echo))
            self._worker.add(Job(prepared, seats, submitted))

    def _end(self, generation: Generation) -> None:
        with self._idle:
            self._running.discard(generation)
            self._completed += 1
            self._idle.notify_all()

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the thread that owns every MLX array, between two steps.

        Raises:
            EngineFailed: The engine has stopped.
            Exception: Whatever the function raises.
        """
        with self._lock:
            if self._state != "ready":
                raise EngineFailed(self._reason)
            future = self._worker.call(function)
        result: T = future.result()
        return result

    def status(self) -> EngineStatus:
        """State and load, without waiting for the model."""
        with self._lock:
            running, completed = len(self._running), self._completed
            active = min(self._worker.active, running)
            return EngineStatus(self._state, self._reason, active, running - active, completed)

    def cache_status(self) -> CacheStatus:
        """What the session cache holds, without waiting for the model."""
        return CacheStatus()

    def clear_session(self, session: str) -> Future[Cleared]:
        """Forget one conversation in both tiers; what others share with it stays.

        Answers that are being made go on, and are kept when they end.

        Raises:
            EngineFailed: The engine has stopped.
        """
        return self._clear(session)

    def clear_cache(self) -> Future[Cleared]:
        """Forget all conversations, in both tiers.

        Raises:
            EngineFailed: The engine has stopped.
        """
        return self._clear(None)

    def _clear(self, session: str | None) -> Future[Cleared]:
        with self._lock:
            if self._state != "ready":
                raise EngineFailed(self._reason)
            return self._worker.call(Cleared)

    def close(self, drain_s: float = 0.0) -> None:
        """Refuse new requests, let running ones finish for `drain_s` seconds, cancel the rest.

        Blocks until the engine's threads have ended. Closing twice does nothing.
        """
        deadline = time.monotonic() + drain_s
        with self._idle:
            if self._state == "ready":
                self._state, self._reason = "closed", "The engine was closed."
            while self._running and (left := deadline - time.monotonic()) > 0:
                self._idle.wait(min(left, threading.TIMEOUT_MAX))
            for generation in self._running:
                generation.cancel()
        self._pool.shutdown(wait=True)
        self._worker.stop()
        atexit.unregister(self.close)

    def _failed(self, failure: EngineFailed) -> None:
        with self._lock:
            if self._state == "ready":
                self._state, self._reason = "failed", str(failure)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _fail(seats: tuple[Seat, ...], error: EngineError) -> None:
    for seat in seats:
        seat.fail(error)


def _ignore(_: LoadProgress) -> None:
    pass
