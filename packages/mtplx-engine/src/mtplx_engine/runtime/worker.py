"""The one thread that owns every MLX array.

It loads the model, then takes turns over the active requests, one step each. What goes wrong in a
step ends the answers it works on. What goes wrong outside ends the worker: every waiting reader
gets `EngineFailed`, and nobody hangs.
"""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from mtplx_engine.backend import mx

from mtplx_engine.errors import EngineError, EngineFailed
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.runtime.memory import apply_limits, available_bytes
from mtplx_engine.runtime.memory_cost import check
from mtplx_engine.runtime.prepare import Prepared
from mtplx_engine.runtime.reading import Reading
from mtplx_engine.runtime.resources import Resources
from mtplx_engine.runtime.turn import Seat, Turn

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """A prepared request on its way into the worker.

    Attributes:
        request: What to do.
        seats: One for each answer wanted.
        submitted: `time.perf_counter()` at submission.
    """

    request: Prepared
    seats: tuple[Seat, ...]
    submitted: float


@dataclass(frozen=True, slots=True)
class _Call:
    function: Callable[[], Any]
    future: "Future[Any]"


class _Stop:
    pass


class Worker:
    """Owns the MLX thread."""

    def __init__(
        self,
        load: Callable[[], LoadedModel],
        *,
        max_active: int,
        prefill_chunk: int,
        on_failure: Callable[[EngineFailed], None],
    ) -> None:
        self._load = load
        self._max_active = max_active
        self._prefill_chunk = prefill_chunk
        self._on_failure = on_failure
        self._inbox: queue.SimpleQueue[Job | _Call | _Stop] = queue.SimpleQueue()
        self._waiting: deque[Job] = deque()
        self._active: deque[Turn] = deque()
        self._model: Future[LoadedModel] = Future()
        self._lock = threading.Lock()
        self._failure: EngineFailed | None = None
        self._thread = threading.Thread(target=self._run, name="mtplx-mlx", daemon=True)

    def start(self) -> LoadedModel:
        """Start the thread and wait for the model.

        Raises:
            ModelError: It cannot be loaded.
        """
        self._thread.start()
        try:
            return self._model.result()
        except BaseException:
            # A thread inside MLX while the interpreter shuts down would abort the process.
            self.stop()
            raise

    def add(self, job: Job) -> None:
        """Hand over a request; its mailbox gets everything that happens."""
        with self._lock:
            failure = self._failure
            if failure is None:
                self._inbox.put(job)
        if failure is not None:
            _fail_over(job.seats, failure)

    def call(self, function: Callable[[], Any]) -> "Future[Any]":
        """Run a function on the MLX thread between two steps."""
        future: Future[Any] = Future()
        with self._lock:
            if self._failure is None:
                self._inbox.put(_Call(function, future))
            else:
                future.set_exception(self._failure)
        return future

    def stop(self) -> None:
        """End the thread after the current step and wait for it. Requests left are failed."""
        self._inbox.put(_Stop())
        self._thread.join()

    @property
    def active(self) -> int:
        """Turns being stepped."""
        return len(self._active)

    def _run(self) -> None:
        try:
            apply_limits()
            model = self._load()
        except BaseException as error:
            self._model.set_exception(error)
            _release_streams()
            return
        self._model.set_result(model)
        try:
            self._serve(model)
            failure = EngineFailed("The engine was closed.")
        except BaseException as error:
            _log.exception("the engine thread died")
            failure = EngineFailed(f"The engine thread died: {error!r}")
            failure.__cause__ = error
        self._on_failure(failure)
        self._fail_all(failure)
        _release_streams()

    def _serve(self, model: LoadedModel) -> None:
        shared = Resources.of(model, chunk=self._prefill_chunk)
        while True:
            if not self._receive(wait=not self._active and not self._waiting):
                return
            self._drop_cancelled()
            while self._waiting and len(self._active) < self._max_active:
                self._admit(shared, self._waiting[0])
                self._waiting.popleft()
            if self._active:
                with shared.experience.costs.turn():
                    self._turn()

    def _drop_cancelled(self) -> None:
        """Free the places of requests whose owners left before their turn came."""
        for job in [job for job in self._waiting if _all_left(job.seats)]:
            self._waiting.remove(job)
            _dismiss(job.seats)

    def _receive(self, *, wait: bool) -> bool:
        """Take everything from the inbox; return False when it is time to stop."""
        while True:
            try:
                message = self._inbox.get(block=wait)
            except queue.Empty:
                return True
            wait = False
            match message:
                case Job():
                    self._waiting.append(message)
                case _Call(function, future):
                    _answer(function, future)
                case _Stop():
                    return False

    def _admit(self, shared: Resources, job: Job) -> None:
        def open_turn() -> tuple[Turn, ...]:
            asked, answers = job.request, len(job.seats)
            cost = shared.cost(asked.kv)
            estimate = cost.estimate(len(asked.tokens), asked.max_tokens, answers=answers)
            check(estimate, available_bytes())
            reading = Reading(shared, asked, job.seats, submitted=job.submitted)
            return (reading,)

        self._active += _attempt(job.seats, open_turn)

    def _turn(self) -> None:
        """One step of the turn that has waited longest.

        It keeps its place meanwhile, so that its readers are told if the thread dies in this step.
        """
        current = self._active[0]
        following = _attempt(current.seats, current.step)
        self._active.popleft()
        self._active += following

    def _fail_all(self, failure: EngineFailed) -> None:
        with self._lock:
            self._failure = failure  # from here on nothing enters the inbox
        waiting = (job.seats for job in self._waiting)
        for seats in [*(turn.seats for turn in self._active), *waiting]:
            _fail_over(seats, failure)
        self._active.clear()
        self._waiting.clear()
        while not self._inbox.empty():
            match self._inbox.get():
                case Job(_, seats):
                    _fail_over(seats, failure)
                case _Call(_, future):
                    future.set_exception(failure)
                case _Stop():
                    pass


def _fail(seats: tuple[Seat, ...], error: EngineError) -> None:
    for seat in seats:
        seat.fail(error)


def _fail_over(seats: tuple[Seat, ...], failure: EngineFailed) -> None:
    # One exception per request: each thread that raises it adds to its traceback.
    own = EngineFailed(str(failure))
    own.__cause__ = failure.__cause__
    _fail(seats, own)


def _all_left(seats: tuple[Seat, ...]) -> bool:
    return all(seat.left for seat in seats)


def _dismiss(seats: tuple[Seat, ...]) -> None:
    for seat in seats:
        seat.dismiss()


def _attempt(seats: tuple[Seat, ...], work: Callable[[], tuple[Turn, ...]]) -> tuple[Turn, ...]:
    """Work on a request and return what is to follow; nothing once it failed."""
    if _all_left(seats):
        _dismiss(seats)
        return ()
    try:
        return work()
    except EngineError as error:
        _fail(seats, error)
    except Exception as error:
        _log.exception("a request failed")
        failure = EngineError(f"The request failed inside the engine: {error!r}")
        failure.__cause__ = error
        _fail(seats, failure)
    return ()


def _answer(function: Callable[[], Any], future: "Future[Any]") -> None:
    try:
        future.set_result(function())
    except Exception as error:
        future.set_exception(error)
    except BaseException as error:
        future.set_exception(EngineFailed(f"The engine thread died: {error!r}"))
        raise


def _release_streams() -> None:
    """End this thread's MLX streams.

    MLX's own thread behind a stream lets go of finished work a little later than `mx.eval`
    returns. If the interpreter is shutting down by then, the process aborts.
    """
    mx.synchronize()
    mx.clear_streams()
