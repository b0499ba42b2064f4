"""Putting what was computed for a sequence into the tree, a block at a time.

It happens after the end of an answer was told, between the steps of others. Only what the tree
does not hold yet is copied.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mtplx_engine.backend import mx

from mtplx_engine.cache.pieces import take_rows
from mtplx_engine.cache.tree import MOST_TOKENS, Held, Node, PrefixTree
from mtplx_engine.decode.sequence import Checkpoint, SequenceState
from mtplx_engine.disk.blocks import PieceKind

HIDDEN = "hidden"  # among the arrays of a state


@dataclass(slots=True)
class Keeping:
    """A sequence being put away.

    Attributes:
        tree: Where to.
        stateful: Whether a sequence can go on from states only.
        sequence: What was computed.
        tokens: What it read; its caches may hold more positions.
        cuts: Positions, rising, where blocks end, besides those of the sequence's checkpoints.
        node: The last block that was put away, or found there already.
        fresh: Told of what is new in the tree.
        marks: Blocks that end at a cut.
        complete: Whether all found room.
    """

    tree: PrefixTree
    stateful: bool
    sequence: SequenceState
    tokens: tuple[int, ...]
    cuts: Sequence[int]
    node: Node
    fresh: Callable[[Node, PieceKind], None]
    marks: list[Node] = field(default_factory=list)
    complete: bool = True

    def steps(self) -> Iterator[None]:
        """Do the work; each step copies one block at most."""
        states = {each.position: each for each in self.sequence.checkpoints}
        ends = sorted({*self.cuts, *states, len(self.tokens)})
        while self.node.end < len(self.tokens):
            start = self.node.end
            cut = next(end for end in ends if end > start)
            child = self._there(start, states)
            if child is None:
                child = self._add(start, min(start + MOST_TOKENS, cut))
                if child is None:
                    self.complete = False
                    return
                yield
            self.node = child
            self._complete(child, states.get(child.end))
            if child.end in ends:
                self.marks.append(child)

    def _there(self, start: int, states: Mapping[int, Checkpoint]) -> Node | None:
        """A block that is there already and does not lead past a state that is to be kept."""
        until = len(self.tokens)
        if self.stateful:
            until = min((at for at in states if start < at <= until), default=until)
        return self.tree.child(self.node, self.tokens[:until])

    def _add(self, start: int, end: int) -> Node | None:
        kv = _held(take_rows(self.sequence.caches, start, end))
        head = self._head_rows(start, end)
        node = self.tree.add(self.node, self.tokens[start:end], kv, head)
        if node is not None:
            self.fresh(node, "kv")
            if head is not None:
                self.fresh(node, "head")
        return node

    def _complete(self, node: Node, checkpoint: Checkpoint | None) -> None:
        """Give a block what it lacks."""
        if node.head is None and (head := self._head_rows(node.start, node.end)) is not None:
            self.tree.add_head(node, head)
            if node.head is not None:
                self.fresh(node, "head")
        if checkpoint is None:
            return
        final = checkpoint.hidden is not None
        if node.state is None or (final and not node.state.final):
            arrays = dict(checkpoint.states)
            if checkpoint.hidden is not None:
                arrays[HIDDEN] = checkpoint.hidden
            if arrays and self.tree.add_state(node, _held(arrays, final=final)):
                self.fresh(node, "state")

    def _head_rows(self, start: int, end: int) -> Held | None:
        """The head's rows for a block: pair p is that of token p + 1."""
        caches = self.sequence.head_cache
        if not caches or not self.sequence.head_whole or caches[0].offset < end - 1:
            return None
        return _held(take_rows(caches, max(start - 1, 0), end - 1))


def _held(arrays: dict[str, mx.array], *, final: bool = False) -> Held:
    mx.eval(list(arrays.values()))
    return Held(arrays, sum(int(value.nbytes) for value in arrays.values()), final)
