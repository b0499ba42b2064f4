"""The session cache as the MLX thread sees it: where prompts go on from, and what is kept of them.

Every method runs on the MLX thread. `status` may be read from any thread.
"""

import logging
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256

from mtplx_engine.backend import mx

from mtplx_engine.cache.pieces import can_be_kept, first_rows, holds_states
from mtplx_engine.cache.tree import Node, Place, PrefixTree
from mtplx_engine.caching import CacheStatus, ColdReason, RamStatus, Restored, SessionInfo
from mtplx_engine.decode.sequence import Checkpoint, SequenceState
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.runtime.keeping import HIDDEN, Keeping
from mtplx_engine.runtime.prepare import Prepared
from mtplx_engine.runtime.sessions import Session, Sessions, Turn

_log = logging.getLogger(__name__)

_EVERY = 4096  # tokens of a prompt between two places to go on from, beside those of its form
_LEAST = 16  # tokens; fewer are computed as fast as they are looked up


class Lease:
    """What one request goes on from. While it lives, its blocks stay.

    Attributes:
        session: The request's.
        root: Of its identity.
        place: Where it goes on from.
        restored: The same for people.
        keeps: Whether its text will be kept.
        leaf: The block that must stay.
    """

    def __init__(
        self, session: Session, root: Node, place: Place, restored: Restored, *, keeps: bool
    ) -> None:
        self.session = session
        self.root = root
        self.place = place
        self.restored = restored
        self.keeps = keeps
        self.leaf = place.leaf


class SessionBank:
    """Keeps what was computed, for later requests.

    Args:
        model: Whose caches they are.
        limit: Most bytes.
        identity: Names the model and whatever else the numbers depend on.
    """

    def __init__(self, model: LoadedModel, limit: int, identity: bytes = b"") -> None:
        caches = model.make_cache()
        self._model = model
        self._identity = identity
        self._stateful = holds_states(caches)
        self._supported = can_be_kept(caches)
        self._leases: weakref.WeakSet[Lease] = weakref.WeakSet()
        self._tree = PrefixTree(limit, stateful=self._stateful, pinned=self._pinned)
        self._sessions = Sessions()
        self._work: deque[Iterator[None]] = deque()
        self._refused = 0
        self.status = CacheStatus()
        self._publish()

    @property
    def active(self) -> bool:
        """Whether anything is kept."""
        return self._supported and self._tree.limit > 0

    def begin(self, request: Prepared) -> Lease:
        """Find where a request goes on from."""
        root = self._tree.root(self._root_key(request))
        tokens = tuple(request.tokens)
        place, why = Place(root, 0), self._no_use(request)
        if why is None:
            place = self._tree.find(root, tokens)
            if place.length < _LEAST:
                place = replace(place, leaf=root, length=0, at_state=False)
        session = self._sessions.of(request.session, place.leaf)
        restored = self._report(session, root, place, tokens, why)
        lease = Lease(session, root, place, restored, keeps=self._keeps(request))
        if lease.keeps:
            session.restored = restored
        self._leases.add(lease)
        self._publish()
        return lease

    def stops(self, request: Prepared) -> tuple[int, ...]:
        """Positions at which reading the prompt pauses, so that its state can be noted."""
        if not self._stateful or not self._keeps(request):
            return ()
        total = len(request.tokens)
        return tuple(sorted({*request.cuts, *range(_EVERY, total, _EVERY)}))

    def fill(self, lease: Lease, sequence: SequenceState) -> None:
        """Give a fresh sequence what its request goes on from."""
        sequence.keep = lease.keeps
        place = lease.place
        if not place.length:
            return
        path = place.leaf.path()
        rows = [first_rows(_kv(node), place.length - node.start) for node in path]
        checkpoint = _checkpoint(place) if place.at_state else None
        pairs = place.length - (checkpoint is not None)
        head = [
            first_rows(node.head.arrays, pairs - max(node.start - 1, 0))
            for node in path
            if node.head is not None
        ]
        whole = len(head) == len(path)
        sequence.restore(place.length, rows, head if whole else None, checkpoint)
        self._tree.touch(place.leaf, state=place.at_state)

    def keep(
        self, lease: Lease, sequence: SequenceState, tokens: list[int], cuts: tuple[int, ...]
    ) -> None:
        """Put away what a sequence read, in `work`.

        Args:
            lease: Of its request.
            sequence: It must not be used any more.
            tokens: What it read, as far as that is to stand.
            cuts: Where blocks should end.
        """
        if lease.keeps and tokens:
            self._work.append(self._put_away(lease, sequence, tuple(tokens), cuts))

    def _put_away(
        self, lease: Lease, sequence: SequenceState, tokens: tuple[int, ...], cuts: tuple[int, ...]
    ) -> Iterator[None]:
        inside = [cut for cut in cuts if cut <= len(tokens)]
        keeping = Keeping(
            self._tree, self._stateful, sequence, tokens, inside, lease.root, self._fresh
        )
        for _ in keeping.steps():
            lease.leaf = keeping.node
            yield
        lease.leaf = keeping.node
        if not keeping.complete:
            self._refused += 1
            _log.warning(
                "session %s: only %d of %d tokens were kept; the limit is %d bytes, see"
                " --session-cache-ram",
                *(lease.session.id, keeping.node.end, len(tokens), self._tree.limit),
            )
        if keeping.marks:
            self._tree.touch(keeping.node)
            lease.session.add(Turn(tuple(keeping.marks), tokens, lease.root))
        self._publish()

    def work(self) -> None:
        """Do a little of what is to be put away."""
        if self._work and next(self._work[0], self) is self:
            self._work.popleft()

    @property
    def busy(self) -> bool:
        """Whether something is to be put away; a request that comes now may need it."""
        return bool(self._work)

    def shed(self, size: int) -> int:
        """Let go of so many bytes for a request; return how many were freed."""
        freed = self._tree.shed(size)
        mx.clear_cache()
        self._publish()
        return freed

    def forget(self, session: str) -> tuple[bool, int]:
        """Forget a session and the blocks that are its own; whether there was one, bytes freed."""
        found = self._sessions.forget(session)
        before = self._tree.bytes
        if found is not None:
            others = {
                node for each in self._sessions for turn in each.latest for node in turn.marks
            }
            others |= set(self._pinned())
            for turn in found.latest:
                self._cut(turn.leaf, others)
        self._publish()
        return found is not None, before - self._tree.bytes

    def _cut(self, leaf: Node, others: set[Node]) -> None:
        node: Node | None = leaf
        while node is not None and node.parent is not None and not node.children:
            if node in others:
                return
            parent = node.parent
            self._tree.remove(node)
            node = parent

    def clear(self) -> tuple[int, int]:
        """Forget everything; return how many sessions and bytes that was."""
        names = [session.id for session in self._sessions]
        for name in names:
            self._sessions.forget(name)
        freed = self._tree.clear()
        mx.clear_cache()
        self._publish()
        return len(names), freed

    def _fresh(self, node: Node, kind: str) -> None:
        """Something is new in the tree."""

    def _pinned(self) -> list[Node]:
        return [lease.leaf for lease in self._leases]

    def _root_key(self, request: Prepared) -> bytes:
        """What is kept in one format is of no use in another."""
        return sha256(self._identity + repr(request.kv).encode()).digest()

    def _keeps(self, request: Prepared) -> bool:
        return self.active and request.caching == "keep"

    def _no_use(self, request: Prepared) -> ColdReason | None:
        """Why a request cannot go on from anything, whatever there is."""
        if not self._tree.limit:
            return "off"
        if not self._supported:
            return "unsupported"
        if request.caching == "off":
            return "bypassed"
        return None if request.prompt_logprobs is None else "scored"

    def _report(
        self,
        session: Session,
        root: Node,
        place: Place,
        tokens: tuple[int, ...],
        why: ColdReason | None,
    ) -> Restored:
        if why is not None:
            return Restored(cold_because=why, session=session.id)
        known, diverged = place.known, place.diverged
        moved = False
        for turn in session.latest:
            shared, parts = _common(turn.tokens, tokens)
            if shared > known:
                known, diverged, moved = shared, parts, turn.root is not root
        at = known if diverged and known >= _LEAST else None
        if place.length:
            cached = min(place.length, len(tokens) - 1)
            return Restored(cached, "ram", None, at, session.id)
        if known < _LEAST:
            reason: ColdReason = "diverged" if session.turns else "new"
        elif moved:
            reason = "kv_format_changed"
        else:
            reason = "diverged" if diverged and place.known == known else "evicted"
        return Restored(0, None, reason, at, session.id)

    def _publish(self) -> None:
        """Let other threads see how things stand."""
        running: dict[str, int] = {}
        for lease in self._leases:
            running[lease.session.id] = running.get(lease.session.id, 0) + 1
        tree = self._tree
        self.status = CacheStatus(
            RamStatus(tree.bytes, tree.limit, tree.blocks, tree.evicted, self._refused),
            None,
            tuple(_describe(each, running.get(each.id, 0)) for each in self._sessions),
            self._trouble(),
        )

    def _trouble(self) -> str:
        if not self._tree.limit:
            return "the session cache is off"
        return "" if self._supported else "this model keeps state in a way that cannot be kept"


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, bool]:
    """How many tokens two texts share at their beginnings, and whether both go on otherwise."""
    shared = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    return (min(len(a), len(b)), False) if shared is None else (shared, True)


def _describe(session: Session, running: int) -> SessionInfo:
    turn = session.latest[-1] if session.latest else None
    return SessionInfo(
        session.id,
        session.named,
        len(turn.tokens) if turn else 0,
        sum(node.bytes for node in turn.leaf.path()) if turn else 0,
        session.turns,
        session.created,
        session.used,
        running,
        session.restored,
    )


def _kv(node: Node) -> Mapping[str, mx.array]:
    assert node.kv is not None
    arrays: Mapping[str, mx.array] = node.kv.arrays
    return arrays


def _checkpoint(place: Place) -> Checkpoint:
    assert place.leaf.state is not None
    states = dict(place.leaf.state.arrays)
    return Checkpoint(place.length, states, states.pop(HIDDEN, None))
