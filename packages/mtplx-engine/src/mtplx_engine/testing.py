"""An engine that plays scripts instead of running a model, for tests of whatever sits above it.

    engine = ScriptedEngine(Script(["Hel", "lo"]))
    assert engine.submit(request).result().text == "Hello"

It goes through the same mailbox and the same `Generation` as the real engine, from another thread,
and knows no MLX.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from mtplx_engine.caching import CacheStatus, Cleared, KVFormat, Restored
from mtplx_engine.chat.dialects import json_object
from mtplx_engine.chat.parser import AnswerForm
from mtplx_engine.chat.reasoning import ReasoningMarkers, ReasoningStart
from mtplx_engine.conversation import Conversation
from mtplx_engine.errors import Cancelled, EngineError, EngineFailed, Overloaded
from mtplx_engine.events import (
    Echo,
    FinishReason,
    PrefillProgress,
    PromptScored,
    ScoredToken,
    Speculation,
    Timings,
)
from mtplx_engine.info import EngineState, EngineStatus, ModelInfo
from mtplx_engine.request import ChatRequest
from mtplx_engine.runtime.generation import Generation
from mtplx_engine.runtime.mailbox import Ended, Mailbox, Opened, Piece

_POLL_S = 0.002

SCRIPTED_MODEL = ModelInfo(
    id="org/scripted",
    source="(script)",
    architecture="script",
    parameters=0,
    context_length=4096,
    quantization="none",
    dtype="none",
    mtp=True,
    mtp_reason="on, because the script says so",
    default_depth=2,
    max_depth=4,
    backend="script",
    created=1_700_000_000,
    efforts=("low", "medium", "high"),
    tool_dialect=json_object.DIALECT.name,
    knows_tools=True,
)


@dataclass(frozen=True, slots=True)
class Hold:
    """A step that lasts until `release` is set, or the generation is cancelled."""

    release: threading.Event


@dataclass(frozen=True, slots=True)
class Scored:
    """A token of the answer with its log-probability."""

    text: str
    score: ScoredToken


Step = str | Scored | PrefillProgress | PromptScored | Hold | EngineError


@dataclass(frozen=True, slots=True)
class Script:
    """One generation.

    Attributes:
        steps: Played in order. A string is one token of the answer, which may hold `<think>`
            markers and, where the request has tools, calls in Hermes' form; an error ends the
            generation.
        before: Lasts before `Started`, as waiting in a queue would.
        rejection: Raised in place of `Started`.
        prompt_tokens: What `Started` says.
        echo: The prompt, for requests that ask for it.
        thinks: Whether the answer begins inside a reasoning block.
        reason: Why it ends; `length` when the request's `max_tokens` comes first.
        stop_sequence: The stop string that ended it.
        restored: What came from the session cache.
        kv: How keys and values were quantised.
    """

    steps: Sequence[Step] = ("Hello", " there")
    before: Hold | None = None
    rejection: EngineError | None = None
    prompt_tokens: int = 7
    echo: Echo | None = None
    thinks: bool = False
    reason: FinishReason = "stop"
    stop_sequence: str | None = None
    restored: Restored = field(default_factory=Restored)
    kv: KVFormat | None = None


class ScriptedEngine:
    """A `ChatEngine` that plays one script, or the one that a function picks for each request.

    Attributes:
        requests: What was submitted, in order.
        cache: What `cache_status` tells.
        cleared: Sessions that were to be forgotten, in order; None: all of them.
        cancelled: Requests that ended because their generation was cancelled.
    """

    def __init__(
        self,
        script: Script | Callable[[ChatRequest], Script] = Script(),
        *,
        model: ModelInfo = SCRIPTED_MODEL,
        capacity: int | None = None,
    ) -> None:
        """Prepare to play.

        Args:
            script: What to play.
            model: What to claim to be.
            capacity: Generations at a time; one more is refused as `Overloaded`.
        """
        self._script = script
        self._model = model
        self._capacity = capacity
        self._changed = threading.Condition()
        self._state: EngineState = "ready"
        self._reason = ""
        self._running: dict[Generation, Mailbox] = {}
        self._completed = 0
        self.requests: list[ChatRequest] = []
        self.cache = CacheStatus()
        self.cleared: list[str | None] = []
        self.cancelled: list[ChatRequest] = []

    @property
    def model(self) -> ModelInfo:
        """What it claims to be."""
        return self._model

    def submit(self, request: ChatRequest) -> Generation:
        """Start to play on a thread of its own; see `submit_batch`."""
        return self.submit_batch((request,), 1)[0]

    def submit_batch(self, requests: Sequence[ChatRequest], choices: int) -> tuple[Generation, ...]:
        """Start to play as many answers to each request, each from a script of its own.

        Raises:
            Overloaded: `capacity` generations are running.
            EngineFailed: `fail` or `close` was called.
        """
        return tuple(self._start(request) for request in requests for _ in range(choices))

    def _start(self, request: ChatRequest) -> Generation:
        script = self._pick(request)
        mailbox = Mailbox()
        generation = Generation(mailbox)
        with self._changed:
            if self._state != "ready":
                raise EngineFailed(f"The engine has stopped: {self._reason}.")
            if self._capacity is not None and len(self._running) >= self._capacity:
                raise Overloaded("The queue is full.", retry_after_s=2)
            self.requests.append(request)
            self._running[generation] = mailbox
        threading.Thread(
            target=self._play, args=(script, request, generation, mailbox), daemon=True
        ).start()
        return generation

    def count_tokens(self, request: ChatRequest) -> Future[int]:
        """What `Started` says for the same request.

        Raises:
            EngineFailed: `fail` or `close` was called.
        """
        script = self._pick(request)
        if self._state != "ready":
            raise EngineFailed(f"The engine has stopped: {self._reason}.")
        future: Future[int] = Future()
        if script.rejection is None:
            future.set_result(script.prompt_tokens)
        else:
            future.set_exception(script.rejection)
        return future

    def _pick(self, request: ChatRequest) -> Script:
        return self._script if isinstance(self._script, Script) else self._script(request)

    def status(self) -> EngineStatus:
        """State and load."""
        with self._changed:
            return EngineStatus(self._state, self._reason, len(self._running), 0, self._completed)

    def cache_status(self) -> CacheStatus:
        """What the `cache` attribute says."""
        return self.cache

    def clear_session(self, session: str) -> Future[Cleared]:
        """Forget the sessions of that name in `cache`.

        Raises:
            EngineFailed: `fail` or `close` was called.
        """
        return self._clear(session)

    def clear_cache(self) -> Future[Cleared]:
        """Forget all sessions in `cache`.

        Raises:
            EngineFailed: `fail` or `close` was called.
        """
        return self._clear(None)

    def _clear(self, session: str | None) -> Future[Cleared]:
        if self._state != "ready":
            raise EngineFailed(f"The engine has stopped: {self._reason}.")
        gone = [each for each in self.cache.sessions if session in {None, each.id}]
        kept = tuple(each for each in self.cache.sessions if each not in gone)
        self.cache = replace(self.cache, sessions=kept)
        self.cleared.append(session)
        future: Future[Cleared] = Future()
        future.set_result(Cleared(len(gone), sum(each.bytes for each in gone), 0))
        return future

    def close(self, drain_s: float = 0.0) -> None:
        """Refuse new requests, wait for running ones for `drain_s`, cancel the rest."""
        self._stop("closed", "it was closed")
        self.wait_idle(drain_s)
        with self._changed:
            for generation in self._running:
                generation.cancel()
            self._changed.wait_for(lambda: not self._running)

    def fail(self, reason: str) -> None:
        """Die as a real engine would: every reader gets `EngineFailed`, and so does `submit`."""
        self._stop("failed", reason)
        with self._changed:
            for generation, mailbox in self._running.items():
                mailbox.put(EngineFailed(f"The engine has stopped: {reason}."))
                generation.cancel()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing runs; return whether that came true."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, timeout_s)

    def _stop(self, state: EngineState, reason: str) -> None:
        with self._changed:
            if self._state == "ready":
                self._state, self._reason = state, reason

    def _play(
        self, script: Script, request: ChatRequest, generation: Generation, mailbox: Mailbox
    ) -> None:
        try:
            self._play_steps(script, request, generation, mailbox)
        except EngineError as error:
            if isinstance(error, Cancelled):
                self.cancelled.append(request)
            mailbox.put(error)
        finally:
            with self._changed:
                del self._running[generation]
                self._completed += 1
                self._changed.notify_all()

    def _play_steps(
        self, script: Script, request: ChatRequest, generation: Generation, mailbox: Mailbox
    ) -> None:
        if script.before is not None:
            _wait(script.before.release, generation)
        if script.rejection is not None:
            raise script.rejection
        echo = script.echo if request.echo else None
        mailbox.put(Opened(script.prompt_tokens, _form(script, request), echo))
        limit = request.limits.max_tokens
        tokens = 0
        for step in script.steps:
            if limit is not None and tokens >= limit:
                break
            if generation.cancelled:
                raise Cancelled("The generation was cancelled.")
            tokens += _play_step(step, generation, mailbox)
        cut = limit is not None and tokens >= limit
        mailbox.put(self._end(script, "length" if cut else script.reason, request))

    def _end(self, script: Script, reason: FinishReason, request: ChatRequest) -> Ended:
        depth = self._model.default_depth if request.depth is None else request.depth
        depth = min(depth, self._model.max_depth)
        speculation = Speculation(
            mode="mtp" if depth else "plain",
            depth=depth,
            acceptance="greedy" if depth else None,
            rounds=3,
            drafted=(3,) * depth,
            accepted=(2,) * depth,
        )
        timings = Timings(queue_s=0.001, prefill_s=0.25, decode_s=0.5)
        return Ended(
            reason,
            script.stop_sequence,
            script.prompt_tokens,
            speculation,
            timings,
            restored=script.restored,
            kv=script.kv,
        )


def _play_step(step: Step, generation: Generation, mailbox: Mailbox) -> int:
    """Play a step and return how many tokens it was."""
    match step:
        case str():
            mailbox.put(Piece((step,)))
        case Scored(text, score):
            mailbox.put(Piece((text,), (score,)))
        case PrefillProgress() | PromptScored():
            mailbox.put(step)
            return 0
        case Hold(release):
            _wait(release, generation)
            return 0
        case EngineError():
            raise step
    return 1


def _form(script: Script, request: ChatRequest) -> AnswerForm:
    if not isinstance(request.prompt, Conversation):
        return AnswerForm()
    tools = request.prompt.tools
    markers = ReasoningMarkers("<think>", "</think>")
    may_call = tools and request.calling.mode != "none"
    return AnswerForm(
        ReasoningStart(markers, script.thinks),
        json_object.DIALECT if may_call else None,
        tools,
        request.calling.parallel,
    )


def _wait(release: threading.Event, generation: Generation) -> None:
    while not release.is_set():
        if generation.cancelled:
            raise Cancelled("The generation was cancelled.")
        time.sleep(_POLL_S)
