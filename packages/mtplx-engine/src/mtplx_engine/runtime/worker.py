"""The one thread that owns every MLX array.

It loads the model, then takes turns over the active sessions, one step each. What goes wrong in a
session's step ends that session. What goes wrong outside ends the worker: every waiting reader
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

from mtplx_engine.errors import Cancelled, EngineError, EngineFailed
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.runtime.generation import Generation
from mtplx_engine.runtime.mailbox import Mailbox
from mtplx_engine.runtime.prepare import Prepared
from mtplx_engine.runtime.session import Session

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """A prepared request on its way into the worker.

    Attributes:
        request: What to do.
        mailbox: Where the items go.
        generation: Polled for cancellation.
        submitted: `time.perf_counter()` at submission.
        on_end: Called once when the request has ended in any way.
    """

    request: Prepared
    mailbox: Mailbox
    generation: Generation
    submitted: float
    on_end: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Active:
    job: Job
    session: Session


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
        self._active: deque[_Active] = deque()
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
            _fail(job, failure)

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
        """Sessions being stepped."""
        return len(self._active)

    def _run(self) -> None:
        try:
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
        while True:
            if not self._receive(wait=not self._active and not self._waiting):
                return
            self._drop_cancelled()
            while self._waiting and len(self._active) < self._max_active:
                self._admit(model, self._waiting[0])
                self._waiting.popleft()
            if self._active:
                self._turn()

    def _drop_cancelled(self) -> None:
        """Free the places of requests whose owners left before their turn came."""
        for job in [job for job in self._waiting if job.generation.cancelled]:
            self._waiting.remove(job)
            _end_cancelled(job)

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

    def _admit(self, model: LoadedModel, job: Job) -> None:
        def open_session() -> bool:
            session = Session(
                model,
                job.request,
                job.mailbox,
                submitted=job.submitted,
                chunk=self._prefill_chunk,
            )
            self._active.append(_Active(job, session))
            return False

        _attempt(job, open_session)

    def _turn(self) -> None:
        """One step of the session that has waited longest.

        It keeps its place meanwhile, so that its reader is told if the thread dies in this step.
        """
        current = self._active[0]
        if _attempt(current.job, current.session.step):
            self._active.popleft()
        else:
            self._active.rotate(-1)

    def _fail_all(self, failure: EngineFailed) -> None:
        with self._lock:
            self._failure = failure  # from here on nothing enters the inbox
        for job in [*(entry.job for entry in self._active), *self._waiting]:
            _fail(job, failure)
        self._active.clear()
        self._waiting.clear()
        while not self._inbox.empty():
            match self._inbox.get():
                case Job() as job:
                    _fail(job, failure)
                case _Call(_, future):
                    future.set_exception(failure)
                case _Stop():
                    pass


def _fail(job: Job, failure: EngineFailed) -> None:
    # One exception per reader: each thread that raises it adds to its traceback.
    own = EngineFailed(str(failure))
    own.__cause__ = failure.__cause__
    job.mailbox.put(own)
    job.on_end()


def _end_cancelled(job: Job) -> None:
    job.mailbox.put(Cancelled("The generation was cancelled."))
    job.on_end()


def _attempt(job: Job, work: Callable[[], bool]) -> bool:
    """Work on a request and return whether it has ended, well or badly."""
    if job.generation.cancelled:
        _end_cancelled(job)
        return True
    try:
        ended = work()
    except EngineError as error:
        job.mailbox.put(error)
        ended = True
    except Exception as error:
        _log.exception("a request failed")
        failure = EngineError(f"The request failed inside the engine: {error!r}")
        failure.__cause__ = error
        job.mailbox.put(failure)
        ended = True
    if ended:
        job.on_end()
    return ended


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
