"""What a caller holds while the engine works: an iterator of events that can be cancelled.

Reasoning is split from text here, on the reader's side, so that the MLX thread does nothing that
does not need it.
"""

import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator

from mtplx_engine.chat.reasoning import ReasoningSplitter
from mtplx_engine.errors import EngineError
from mtplx_engine.events import (
    ChatResult,
    Event,
    Finished,
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
        self._splitter: ReasoningSplitter | None = None
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
        while not self._events:
            if self._over:
                raise StopAsyncIteration
            try:
                self._receive(await self._mailbox.take_async())
            except EngineError:
                self._over = True
                raise
        return self._events.popleft()

    def result(self) -> ChatResult:
        """Wait for the end and return the whole answer; for a generation that nobody iterated.

        Raises:
            RuntimeError: The generation has been read already.
            EngineError: What went wrong with this request, or with the engine.
        """
        if self._over and not self._events:
            raise RuntimeError("This generation has been read already.")
        return fold(self)

    def _receive(self, item: Item) -> None:
        match item:
            case Opened(prompt_tokens, reasoning):
                self._splitter = ReasoningSplitter(reasoning) if reasoning else None
                self._events.append(Started(prompt_tokens))
            case PrefillProgress() | PromptScored():
                self._events.append(item)
            case Piece(texts, scores):
                if scores:
                    self._events.append(TokensScored(scores))
                self._receive_piece(texts)
            case Ended():
                self._finish(item)

    def _receive_piece(self, texts: tuple[str, ...]) -> None:
        self._completion_tokens += len(texts)
        if self._splitter is None:
            self._post(TextDelta("".join(texts)))
            return
        for text in texts:
            before = self._splitter.reasoning
            for delta in self._splitter.feed(text):
                self._post(delta)
            # The markers themselves count as reasoning.
            self._reasoning_tokens += before or self._splitter.reasoning

    def _post(self, delta: TextDelta | ReasoningDelta) -> None:
        """Append a delta, joined with the one before it when they are of a kind."""
        last = self._events[-1] if self._events else None
        if not delta.text:
            return
        if isinstance(delta, TextDelta) and isinstance(last, TextDelta):
            self._events[-1] = TextDelta(last.text + delta.text)
        elif isinstance(delta, ReasoningDelta) and isinstance(last, ReasoningDelta):
            self._events[-1] = ReasoningDelta(last.text + delta.text)
        else:
            self._events.append(delta)

    def _finish(self, end: Ended) -> None:
        if self._splitter is not None:
            for delta in self._splitter.close():
                self._post(delta)
        usage = Usage(end.prompt_tokens, self._completion_tokens, self._reasoning_tokens)
        self._events.append(
            Finished(
                end.reason,
                end.stop_sequence,
                usage,
                end.speculation,
                end.timings,
                end.peak_memory,
            )
        )
        self._over = True


def fold(events: Iterator[Event]) -> ChatResult:
    """Join the events of one generation into its result.

    Raises:
        EngineError: Whatever the iterator raises.
    """
    text: list[str] = []
    reasoning: list[str] = []
    scores: list[ScoredToken] = []
    prompt_scores: list[ScoredToken] = []
    for event in events:
        match event:
            case TextDelta(delta):
                text.append(delta)
            case ReasoningDelta(delta):
                reasoning.append(delta)
            case TokensScored(tokens):
                scores += tokens
            case PromptScored(tokens):
                prompt_scores += tokens
            case Finished():
                said = "".join(text), "".join(reasoning)
                return ChatResult(*said, event, tuple(scores), tuple(prompt_scores))
            case Started() | PrefillProgress():
                pass
    raise AssertionError("a generation ended without Finished")
