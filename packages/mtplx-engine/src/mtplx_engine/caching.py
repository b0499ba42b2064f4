"""What callers say and hear of a sequence's cache and of the session cache.

Plain values: no MLX, no HTTP.

A sequence keeps the keys and values of its attention layers, perhaps quantised.

The session cache keeps what was computed for a prompt and its answer, so that the next turn of the
conversation computes only what is new. It has two tiers: memory, and a folder on disk.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mtplx_engine.errors import InvalidRequest

CacheUse = Literal["keep", "read", "off"]
DiskMode = Literal["off", "on", "write-only"]
Tier = Literal["ram", "disk"]
KVSetting = Literal["off", "q8", "q4"]
ColdReason = Literal[
    "new",  # nothing that was kept begins like this prompt
    "diverged",  # the prompt leaves what was kept before the first place to go on from
    "evicted",  # it was kept, and had to make room
    "model_changed",  # it was kept for another model, or by another version
    "kv_format_changed",  # it was kept with another KV quantisation
    "unreadable",  # what lay on disk could not be read, or was damaged
    "scored",  # every token of the prompt is scored, so all of it is computed
    "bypassed",  # the request asked for it
    "unsupported",  # this model keeps state in a way that cannot be kept
    "off",  # there is no session cache
]

KV_BITS = (8, 4, 2)
KV_GROUP_SIZES = (64, 32, 128)  # the one that is taken first where nobody asks


@dataclass(frozen=True, slots=True)
class KVFormat:
    """How the keys and values of a sequence are quantised, in all its attention layers.

    Where nothing is quantised, None stands in its place.

    Attributes:
        bits: Of a number.
        group_size: Numbers that share a scale and an offset.
    """

    bits: int
    group_size: int

    def __str__(self) -> str:
        return f"q{self.bits} group {self.group_size}"


@dataclass(frozen=True, slots=True)
class KVQuant:
    """How a request wants its keys and values quantised.

    A sequence has one format from its first position to its last. So the answer of a seed depends
    on the request alone.

    Attributes:
        bits: Of a number: 8, 4 or 2. 0 or less: nothing is quantised. None takes the engine's
            setting.
        group_size: Numbers that share a scale and an offset; None takes what fits the model.
        start: Only prompts of at least so many tokens are quantised; None and 0 or less: all.
    """

    bits: int | None = None
    group_size: int | None = None
    start: int | None = None

    def __post_init__(self) -> None:
        if self.bits is not None and self.bits > 0 and self.bits not in KV_BITS:
            text = f"kv_bits must be 8, 4 or 2, or 0 for no quantisation; got {self.bits}."
            raise InvalidRequest(text, "kv_bits")
        if self.group_size is not None and self.group_size not in KV_GROUP_SIZES:
            text = f"kv_group_size must be 32, 64 or 128; got {self.group_size}."
            raise InvalidRequest(text, "kv_group_size")


@dataclass(frozen=True, slots=True)
class SessionCacheOptions:
    """How much is kept, and where.

    Attributes:
        ram: Bytes in memory; None takes half of what is free once the weights are loaded, at most
            48 GiB; 0 switches the session cache off.
        disk: `on` also writes to disk and reads from there, `write-only` never reads.
        folder: Where to; None takes `$MTPLX_HOME/session-cache`.
        disk_bytes: Most bytes on disk; None goes by what is free there.
        free_bytes: Nothing is written where less than this would stay free.
        hourly_bytes: Most bytes written in an hour, to spare the disk.
    """

    ram: int | None = None
    disk: DiskMode = "off"
    folder: Path | None = None
    disk_bytes: int | None = None
    free_bytes: int = 10 * 2**30
    hourly_bytes: int = 128 * 2**30

    def __post_init__(self) -> None:
        for name in ("ram", "disk_bytes", "free_bytes", "hourly_bytes"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidRequest(f"session_cache.{name} must be 0 or more.", name)


@dataclass(frozen=True, slots=True)
class Restored:
    """How much of a prompt was not computed again, and why not more.

    Attributes:
        tokens: Tokens of the prompt that were not computed; at most all but one.
        source: Where they came from; None when all was computed.
        cold_because: Why all was computed; None otherwise.
        diverged_at: The position at which the prompt leaves the most similar text that is known;
            None where it does not, or where there is none.
        session: The session that the request belongs to.
    """

    tokens: int = 0
    source: Tier | None = None
    cold_because: ColdReason | None = "off"
    diverged_at: int | None = None
    session: str = ""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A conversation that the cache knows.

    Attributes:
        id: What the client calls it, or a name of our own.
        named: Whether the client named it.
        tokens: Length of its latest turn, answer included.
        bytes: What that turn takes in memory; what it shares with others is counted in full. 0
            when it had to make room.
        turns: How many it had.
        created: Unix time of its first turn.
        used: Unix time of its latest turn.
        running: Answers that are being made.
        restored: What became of its latest prompt; None before the first.
    """

    id: str
    named: bool
    tokens: int
    bytes: int
    turns: int
    created: float
    used: float
    running: int
    restored: Restored | None


@dataclass(frozen=True, slots=True)
class RamStatus:
    """The tier in memory.

    Attributes:
        bytes: Held.
        limit: Most bytes.
        blocks: Stretches of tokens held.
        evicted: Stretches that had to make room, since the start.
        refused: Turns of which not all found room, since the start.
    """

    bytes: int = 0
    limit: int = 0
    blocks: int = 0
    evicted: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class DiskStatus:
    """The tier on disk.

    Attributes:
        mode: Whether it is read and written.
        folder: Where it is.
        bytes: What its files take.
        limit: Most bytes.
        free: Bytes that are free on that disk.
        blocks: Stretches of tokens there, of all models.
        queued: Files waiting to be written.
        written: Files written since the start.
        written_bytes: Their bytes.
        read: Files read since the start.
        read_bytes: Their bytes.
        dropped: Files that were not written: no room in the queue, on the disk or in the budget.
        damaged: Files that were found damaged, and removed.
        trouble: Why nothing is written at present; empty when all is well.
    """

    mode: DiskMode
    folder: str
    bytes: int = 0
    limit: int = 0
    free: int = 0
    blocks: int = 0
    queued: int = 0
    written: int = 0
    written_bytes: int = 0
    read: int = 0
    read_bytes: int = 0
    dropped: int = 0
    damaged: int = 0
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """The session cache at a moment.

    Attributes:
        ram: The tier in memory.
        disk: The tier on disk; None when it is off.
        sessions: Conversations, the latest first.
        trouble: Why nothing is kept; empty when all is well.
    """

    ram: RamStatus = field(default_factory=RamStatus)
    disk: DiskStatus | None = None
    sessions: tuple[SessionInfo, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Cleared:
    """What was removed from the cache.

    Attributes:
        sessions: Conversations that are forgotten.
        ram_bytes: Freed in memory.
        disk_bytes: Freed on disk.
    """

    sessions: int = 0
    ram_bytes: int = 0
    disk_bytes: int = 0
