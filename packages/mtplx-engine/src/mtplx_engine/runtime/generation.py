"""What a caller holds while the engine works: an iterator of events that can be cancelled.

Thoughts and calls are told from text here, on the reader's side, so that the MLX thread does
nothing that does not need it.
"""

import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import assert_never

from mtplx_engine.chat.parser import AnswerForm, AnswerParser
from mtplx_engine.errors import EngineError
from mtplx_engine.events import (
    Call,
    CallBroken,
    CallDelta,
    CallEnded,
    CallEvent,
    CallStarted,
    ChatResult,
    Echo,
    Event,
    Finished,
    Part,
    PrefillProgress,
    PromptScored,
    ReasoningDelta,
    ScoredToken,
    Started,
    TextDelta,
    TokensScored,
    Usage,
)
from mtplx_engine.runtime.mailbox import Ended, Item, Mailbox, Opened, Piece


class Generation:
    """The events of one request, for one reader, synchronously or asynchronously.

    Waiting for an event can be cancelled and resumed; nothing is lost. Once `Finished` was
    delivered, or an error raised, the iterator ends.
    """

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._cancel = threading.Event()
        self._events: deque[Event] = deque()
        self._parser = AnswerParser(AnswerForm())
        self._completion_tokens = 0
        self._reasoning_tokens = 0
        self._over = False

    def cancel(self) -> None:
        """Ask the engine to stop; it does within one round. Safe from any thread, any time."""
        self._cancel.set()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called. The engine polls this once per round."""
        return self._cancel.is_set()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._events:
            if self._over:
                raise StopIteration
            try:
                self._receive(self._mailbox.take())
            except EngineError:
                self._over = True
                raise
        return self._events.popleft()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        if not self._events:
            await self._receive_async()
        if not self._events:
            raise StopAsyncIteration
        return self._events.popleft()

    async def burst(self) -> list[Event]:
        """All events that have come, after waiting for the first; none at the end.

        Usually what one round made: a delta for each token that settled some text.
        """
        if not self._events:
            await self._receive_async()
        events = list(self._events)
        self._events.clear()
        return events

    def result(self) -> ChatResult:
        """Wait for the end and return the whole answer; for a generation that nobody iterated.

        Raises:
            RuntimeError: The generation has been read already.
            EngineError: What went wrong with this request, or with the engine.
        """
        if self._over and not self._events:
            raise RuntimeError("This generation has been read already.")
        return fold(self)

    async def _receive_async(self) -> None:
        """Wait until there are events, unless the generation is over."""
        while not self._events and not self._over:
            try:
                self._receive(await self._mailbox.take_async())
            except EngineError:
                self._over = True
                raise

    def _receive(self, item: Item) -> None:
        match item:
            case Opened(prompt_tokens, form, echo):
                self._parser = AnswerParser(form)
                self._events.append(Started(prompt_tokens, echo))
            case PrefillProgress() | PromptScored():
                self._events.append(item)
            case Piece(texts, scores):
                self._receive_piece(texts, scores)
            case Ended():
                self._finish(item)
            case _:
                assert_never(item)

    def _receive_piece(self, texts: tuple[str, ...], scores: tuple[ScoredToken, ...]) -> None:
        for at, text in enumerate(texts):
            if scores:
                self._events.append(TokensScored(scores[at : at + 1]))
            before = self._parser.thinking
            self._events += self._parser.feed(text)
            self._completion_tokens += 1
            # The markers themselves count as reasoning.
            self._reasoning_tokens += before or self._parser.thinking

    def _finish(self, end: Ended) -> None:
        self._events += self._parser.close(limited=end.reason == "length")
        self._events.append(
            Finished(
                self._parser.reason(end.reason),
                end.stop_sequence,
                Usage(
                    end.prompt_tokens,
                    self._completion_tokens,
                    self._reasoning_tokens,
                    end.restored.tokens,
                ),
                end.speculation,
                end.timings,
                end.peak_memory,
                self._parser.report(),
                end.restored,
                end.kv,
            )
        )
        self._over = True


def fold(events: Iterator[Event]) -> ChatResult:
    """Join the events of one generation into its result.

    Raises:
        EngineError: Whatever the iterator raises.
    """
    said: list[TextDelta | ReasoningDelta | CallStarted] = []
    calls: list[Call] = []
    scores: list[ScoredToken] = []
    prompt_scores: list[ScoredToken] = []
    echo: Echo | None = None
    for event in events:
        match event:
            case TextDelta() | ReasoningDelta():
                said.append(event)
            case CallStarted() | CallDelta() | CallEnded() | CallBroken():
                if isinstance(event, CallStarted):
                    said.append(event)
                _fold_call(calls, event)
            case TokensScored(tokens):
                scores += tokens
            case PromptScored(tokens):
                prompt_scores += tokens
            case Finished():
                parts = tuple(_parts(said, calls))
                return ChatResult(
                    "".join(each.text for each in parts if isinstance(each, TextDelta)),
                    "".join(each.text for each in parts if isinstance(each, ReasoningDelta)),
                    event,
                    tuple(calls),
                    parts,
                    tuple(scores),
                    tuple(prompt_scores),
                    echo,
                )
            case Started():
                echo = event.echo
            case PrefillProgress():
                pass
            case _:
                assert_never(event)
    raise AssertionError("a generation ended without Finished")


def _fold_call(calls: list[Call], event: CallEvent) -> None:
    match event:
        case CallStarted(_, name):
            calls.append(Call(name, "", complete=False))
        case CallDelta(at, text):
            calls[at] = replace(calls[at], arguments=calls[at].arguments + text)
        case CallEnded(at):
            calls[at] = replace(calls[at], complete=True)
        case CallBroken():
            pass  # it is not complete as long as nobody says so
        case _:
            assert_never(event)


def _parts(
    said: Sequence[TextDelta | ReasoningDelta | CallStarted], calls: Sequence[Call]
) -> Iterator[Part]:
    """What was said, in order; neighbours of one kind are joined."""
    for kind, group in groupby(said, type):
        texts: list[str] = []
        for each in group:
            if isinstance(each, CallStarted):
                yield calls[each.index]
            else:
                texts.append(each.text)
        if texts:
            yield (ReasoningDelta if kind is ReasoningDelta else TextDelta)("".join(texts))
