"""The tree of what is kept in memory: which tokens lead where, and what has to make room.

A block is a stretch of tokens with what was computed for it; its children go on from its end.
Conversations that begin alike share their first blocks. A block never changes, but may gain or
lose the state at its end. This module knows no arrays, only how many bytes they take.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mtplx_engine.disk.blocks import child_key

MOST_TOKENS = 256  # of a block; a branch may repeat what it shares within one


@dataclass(frozen=True, slots=True)
class Held:
    """Arrays of a block.

    Attributes:
        arrays: By name.
        bytes: What they take.
        final: Of a state: whether the next token can be drawn from it without a pass.
    """

    arrays: Any
    bytes: int
    final: bool = False


@dataclass(slots=True, eq=False)
class Node:
    """A block.

    Attributes:
        key: Names it, and all tokens that lead to it, for good.
        parent: What it goes on from; None for a root.
        start: Position of its first token.
        tokens: At least one, but for a root.
        kv: Keys and values of its positions; None for a root.
        head: What the draft head computed for it.
        state: What its end came to.
        children: What goes on from its end.
        used: When it was last of use; its parent was not used less recently.
        state_used: When the state was.
        kept: How many latest turns end here; these make room last.
    """

    key: bytes
    parent: "Node | None" = None
    start: int = 0
    tokens: tuple[int, ...] = ()
    kv: Held | None = None
    head: Held | None = None
    state: Held | None = None
    children: "list[Node]" = field(default_factory=list)
    used: int = 0
    state_used: int = 0
    kept: int = 0

    @property
    def end(self) -> int:
        """Position after its last token."""
        return self.start + len(self.tokens)

    @property
    def bytes(self) -> int:
        """What it takes."""
        return sum(held.bytes for held in (self.kv, self.head, self.state) if held is not None)

    def path(self) -> "list[Node]":
        """The blocks from the first one to this one."""
        nodes: list[Node] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a prompt can go on from.

    Attributes:
        leaf: The last block that is needed; of it maybe only the first tokens.
        length: Tokens that need not be computed.
        at_state: Whether the leaf's state is used, at its end.
        known: How many tokens of the prompt are in the tree; more than `length` where it holds no
            place to go on from.
        diverged: Whether the tree goes on from there with another token than the prompt.
    """

    leaf: Node
    length: int
    at_state: bool = False
    known: int = 0
    diverged: bool = False


class PrefixTree:
    """Blocks, bounded in bytes.

    Attributes:
        limit: Most bytes.
        bytes: Held.
        blocks: How many.
        evicted: Blocks that had to make room.

    Args:
        limit: Most bytes.
        stateful: Whether a sequence can go on from states only.
        pinned: The blocks that running sequences go on from; they stay.
    """

    def __init__(
        self, limit: int, *, stateful: bool, pinned: Callable[[], Iterable[Node]] = tuple
    ) -> None:
        self.limit = limit
        self.bytes = 0
        self.blocks = 0
        self.evicted = 0
        self._stateful = stateful
        self._pinned = pinned
        self._roots: dict[bytes, Node] = {}
        self._clock = 0

    def root(self, key: bytes) -> Node:
        """The root of all sequences of one identity."""
        return self._roots.setdefault(key, Node(key))

    def find(self, root: Node, tokens: tuple[int, ...]) -> Place:
        """The deepest place that a prompt can go on from.

        From a state, or, where rows are all there is, from the token before the last one that is
        shared: it is read again for the state of its position.
        """
        best, known, diverged, stack = Place(root, 0), 0, False, [root]
        while stack:
            for child in stack.pop().children:
                shared = _shared(child, tokens)
                reach = child.start + shared
                differs = shared < len(child.tokens) and reach < len(tokens)
                if reach > known or (reach == known and differs):
                    known, diverged = reach, differs
                if shared == len(child.tokens):
                    stack.append(child)
                    state = child.state
                    if state and (state.final or reach < len(tokens)) and reach > best.length:
                        best = Place(child, reach, at_state=True)
                if not self._stateful and shared and reach - 1 > best.length:
                    best = Place(child, reach - 1)
        return replace(best, known=known, diverged=diverged)

    def child(self, parent: Node, tokens: tuple[int, ...]) -> Node | None:
        """The longest block that goes on from a block with the next of these tokens."""
        fitting = [each for each in parent.children if _shared(each, tokens) == len(each.tokens)]
        return max(fitting, key=lambda each: each.end, default=None)

    def add(
        self, parent: Node, tokens: tuple[int, ...], kv: Held, head: Held | None
    ) -> Node | None:
        """Hang a block below another; None when nothing can make room for it."""
        size = kv.bytes + (head.bytes if head else 0)
        if not self.make_room(size, beside=parent):
            return None
        key = child_key(parent.key, tokens)
        node = Node(key, parent, parent.end, tokens, kv, head)
        parent.children.append(node)
        self.bytes += size
        self.blocks += 1
        self.touch(node)
        return node

    def add_state(self, node: Node, state: Held) -> bool:
        """Give a block the state at its end; False when nothing can make room for it."""
        if not self.make_room(state.bytes, beside=node):
            return False
        self._swap(node, "state", state)
        node.state_used = self._tick()
        return True

    def add_head(self, node: Node, head: Held) -> None:
        """Give a block what the head computed for it, if there is room."""
        if self.make_room(head.bytes, beside=node):
            self._swap(node, "head", head)

    def _swap(self, node: Node, name: str, held: Held | None) -> None:
        before = getattr(node, name)
        self.bytes += (held.bytes if held else 0) - (before.bytes if before else 0)
        setattr(node, name, held)

    def touch(self, node: Node, *, state: bool = False) -> None:
        """Note that a block, and all that lead to it, were of use just now."""
        now = self._tick()
        for each in node.path():
            each.used = now
        if state:
            node.state_used = now

    def make_room(self, size: int, *, beside: Node | None = None) -> bool:
        """Let go of what was of use least recently until so many more bytes fit.

        Args:
            size: Bytes that are to be added.
            beside: A block that stays.
        """
        if self.bytes + size <= self.limit:
            return True
        if size > self.limit:
            return False
        # A little more than asked, so that a long turn does not look through the tree each time.
        self._evict(self.limit - size - self.limit // 64, beside)
        return self.bytes + size <= self.limit

    def shed(self, size: int) -> int:
        """Let go of so many bytes, for others; return how many were freed."""
        before = self.bytes
        self._evict(max(self.bytes - size, 0), None)
        return before - self.bytes

    def _evict(self, target: int, beside: Node | None) -> None:
        staying = {id(node) for node in self._pinned()} | {id(beside)}
        heap = [entry for node in self.nodes() if (entry := self._rank(node, staying))]
        heapq.heapify(heap)
        while heap and self.bytes > target:
            _, _, _, node = heapq.heappop(heap)
            if node.children:
                self._swap(node, "state", None)
                continue
            parent = node.parent
            self.remove(node)
            self.evicted += 1
            if parent is None or parent.children:
                continue
            if entry := self._rank(parent, staying):
                heapq.heappush(heap, entry)

    def _rank(self, node: Node, staying: set[int]) -> tuple[bool, int, int, Node] | None:
        """How soon a block, or only its state, makes room; None if it cannot."""
        if node.parent is None or id(node) in staying:
            return None
        if not node.children:
            # Rows that lead to no state are of no use to a stateful model.
            useless = self._stateful and node.state is None
            return node.kept > 0 and not useless, 0 if useless else node.used, id(node), node
        if self._stateful and node.state is not None:
            return node.kept > 0, node.state_used, id(node), node
        return None

    def remove(self, node: Node) -> None:
        """Take a block without children out of the tree."""
        assert node.parent is not None
        assert not node.children
        node.parent.children.remove(node)
        self.bytes -= node.bytes
        self.blocks -= 1
        node.parent = None
        node.kv = node.head = node.state = None

    def clear(self) -> int:
        """Forget everything that no running sequence goes on from; return the bytes freed."""
        before = self.bytes
        self._evict(0, None)
        return before - self.bytes

    def nodes(self) -> Iterator[Node]:
        """All blocks."""
        stack = [child for root in self._roots.values() for child in root.children]
        while stack:
            node = stack.pop()
            yield node
            stack += node.children

    def _tick(self) -> int:
        self._clock += 1
        return self._clock


def _shared(node: Node, tokens: Sequence[int]) -> int:
    """How many of a block's tokens the prompt has at its place."""
    own = node.tokens
    there = tokens[node.start : node.start + len(own)]
    if there == own:
        return len(own)
    return next((i for i, (a, b) in enumerate(zip(own, there, strict=False)) if a != b), len(there))
