"""Which conversations there are, and where each of them ended last."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from mtplx_engine.cache.tree import Node
from mtplx_engine.caching import Restored

_MOST = 256  # sessions that are remembered
_BRANCHES = 4  # latest turns of a session: it may have side conversations, such as subagents


@dataclass(slots=True, eq=False)
class Turn:
    """The latest turn of a conversation, or of one of its branches.

    Attributes:
        marks: Blocks at whose ends a next turn may go on: after the messages, after the prompt,
            after the answer.
        tokens: Prompt and answer.
        root: Of their identity.
        held: Whether these blocks make room last.
    """

    marks: tuple[Node, ...]
    tokens: tuple[int, ...]
    root: Node
    held: bool = False

    @property
    def leaf(self) -> Node:
        """The deepest of the blocks."""
        return self.marks[-1]

    def hold(self, held: bool) -> None:
        """Let its blocks make room last, or like all others."""
        if held != self.held:
            self.held = held
            for node in self.marks:
                node.kept += 1 if held else -1


@dataclass(slots=True, eq=False)
class Session:
    """A conversation.

    Attributes:
        id: Its name.
        named: Whether the client named it.
        created: Unix time.
        used: Unix time.
        turns: How many ended.
        latest: The latest turn of each branch, the newest last.
        restored: What became of its latest prompt.
    """

    id: str
    named: bool
    created: float
    used: float
    turns: int = 0
    latest: list[Turn] = field(default_factory=list)
    restored: Restored | None = None

    @property
    def lasting(self) -> bool:
        """Whether it is likely to go on: one-shot requests make room before conversations."""
        return self.named or self.turns > 1

    def add(self, turn: Turn) -> None:
        """A turn ended. It takes the place of the one that it goes on from."""
        self.turns += 1
        self.used = time.time()
        path = set(turn.leaf.path())
        gone = [each for each in self.latest if not path.isdisjoint(each.marks)]
        if not gone and len(self.latest) == _BRANCHES:
            gone = self.latest[:1]
        for each in gone:
            self.latest.remove(each)
            each.hold(False)
        self.latest.append(turn)
        if self.lasting:
            for each in self.latest:
                each.hold(True)

    def let_go(self) -> None:
        """Its blocks may make room like all others."""
        for each in self.latest:
            each.hold(False)


class Sessions:
    """The sessions that were of use last."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, Session] = OrderedDict()

    def __iter__(self) -> Iterator[Session]:
        """The latest first."""
        return reversed(list(self._all.values()))

    def get(self, name: str) -> Session | None:
        """The session of that name."""
        return self._all.get(name)

    def of(self, name: str | None, leaf: Node) -> Session:
        """The session of a request: the one it names, or the one whose turn it goes on from."""
        session = self._all.get(name) if name is not None else self._continued(leaf)
        if session is None:
            now = time.time()
            session = Session(name or f"unnamed-{secrets.token_hex(8)}", name is not None, now, now)
            self._all[session.id] = session
            if len(self._all) > _MOST:
                _, oldest = self._all.popitem(last=False)
                oldest.let_go()
        self._all.move_to_end(session.id)
        return session

    def forget(self, name: str) -> Session | None:
        """Remove the session of that name and return it."""
        session = self._all.pop(name, None)
        if session is not None:
            session.let_go()
        return session

    def _continued(self, leaf: Node) -> Session | None:
        path = set(leaf.path())
        for session in self:
            if any(not path.isdisjoint(turn.marks) for turn in session.latest):
                return session
        return None
