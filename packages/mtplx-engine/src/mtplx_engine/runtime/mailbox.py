"""From the MLX thread to whoever reads a generation.

The writer never waits: the box is bounded only by the length of the answer. A reader that is
behind finds its text in one piece instead of many, so a slow client costs one wake-up, not one
per token.
"""

import asyncio
import contextlib
import threading
from collections import deque
from dataclasses import dataclass, field

from mtplx_engine.caching import KVFormat, Restored
from mtplx_engine.chat.parser import AnswerForm
from mtplx_engine.errors import EngineError
from mtplx_engine.events import (
    Echo,
    FinishReason,
    PrefillProgress,
    PromptScored,
    ScoredToken,
    Speculation,
    Timings,
)


@dataclass(frozen=True, slots=True)
class Opened:
    """The prompt is rendered and fits; `form` says how the answer's text is to be read."""

    prompt_tokens: int
    form: AnswerForm = field(default_factory=AnswerForm)
    echo: Echo | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """The text that each of some tokens settled, in order; many settle none.

    One text a token, so that what is counted as reasoning depends on the tokens alone, not on how
    many came out of a round or were waiting in the box.
    """

    texts: tuple[str, ...]
    scores: tuple[ScoredToken, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """The last item of a generation that did not fail."""

    reason: FinishReason
    stop_sequence: str | None
    prompt_tokens: int
    speculation: Speculation
    timings: Timings
    peak_memory: int = 0
    restored: Restored = field(default_factory=Restored)
    kv: KVFormat | None = None


Item = Opened | PrefillProgress | PromptScored | Piece | Ended


class Mailbox:
    """One writer, one reader, on different threads."""

    def __init__(self) -> None:
        self._items: deque[Item | EngineError] = deque()
        self._ready = threading.Condition()
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def put(self, item: Item | EngineError) -> None:
        """Append an item and wake the reader; an exception is raised by the reader's `take`."""
        with self._ready:
            self._items.append(item)
            self._ready.notify()
            if self._waiter is not None:
                loop, event = self._waiter
                # A loop that has closed has nobody left who could read.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(event.set)

    def take(self) -> Item:
        """The next item, waiting for it on this thread.

        Raises:
            EngineError: Whatever the writer put in place of an item.
        """
        with self._ready:
            while not self._items:
                self._ready.wait()
            return self._pop()

    async def take_async(self) -> Item:
        """The next item, waiting for it on the running event loop.

        Being cancelled while it waits loses nothing: the next call gets the item.

        Raises:
            EngineError: Whatever the writer put in place of an item.
        """
        event = asyncio.Event()
        with self._ready:
            if self._items:
                return self._pop()
            self._waiter = (asyncio.get_running_loop(), event)
        try:
            await event.wait()
        finally:
            with self._ready:
                self._waiter = None
        with self._ready:
            return self._pop()

    def _pop(self) -> Item:
        item = self._items.popleft()
        if isinstance(item, EngineError):
            raise item
        if isinstance(item, Piece):
            return self._join(item)
        return item

    def _join(self, piece: Piece) -> Piece:
        """A piece and all that wait behind it, as one."""
        texts, scores = list(piece.texts), list(piece.scores)
        while self._items and isinstance(following := self._items[0], Piece):
            texts += following.texts
            scores += following.scores
            self._items.popleft()
        return Piece(tuple(texts), tuple(scores))
