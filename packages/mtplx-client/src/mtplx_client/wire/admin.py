"""What operators see of the session cache."""

from mtplx_client.wire.base import WireReply
from mtplx_client.wire.usage import CacheReport


class SessionCard(WireReply):
    """A conversation that the session cache knows.

    Attributes:
        session_id: What the client calls it, or a name that the server gave it.
        named: Whether the client named it.
        tokens: Length of its latest turn, answer included.
        bytes: What that turn takes in memory; what others share with it counts too.
        turns: How many it had.
        created: Unix time of its first turn.
        used: Unix time of its latest turn.
        running: Answers that are being made.
        cache: What the session cache did for its latest prompt; None before the first.
    """

    session_id: str
    named: bool
    tokens: int
    bytes: int
    turns: int
    created: float
    used: float
    running: int
    cache: CacheReport | None


class RamCard(WireReply):
    """The session cache in memory.

    Attributes:
        bytes: Held.
        limit: Most bytes.
        blocks: Stretches of tokens held.
        evicted: Stretches that had to make room, since the start.
        refused: Turns of which not all found room, since the start.
    """

    bytes: int
    limit: int
    blocks: int
    evicted: int
    refused: int


class SessionList(WireReply):
    """The conversations, the latest first, and what all of them take.

    Attributes:
        sessions: One entry for each.
        count: How many.
        ram: What they take in memory.
        trouble: Why nothing is kept; empty when all is well.
    """

    sessions: list[SessionCard]
    count: int
    ram: RamCard
    trouble: str


class SessionCleared(WireReply):
    """What became of one conversation.

    Attributes:
        session_id: The name that was given.
        existed: Whether there was one of that name.
        cleared_ram_bytes: Freed in memory; what others share with it stays.
    """

    session_id: str
    existed: bool
    cleared_ram_bytes: int


class CacheCleared(WireReply):
    """What was forgotten.

    Attributes:
        sessions: Conversations.
        cleared_ram_bytes: Freed in memory.
    """

    sessions: int
    cleared_ram_bytes: int
