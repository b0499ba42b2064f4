"""Measuring what the caches of a sequence hold and what reading a chunk takes for a moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mtplx_engine.backend import mx

from mlx.utils import tree_map
from mlx_lm.models.cache import CacheList, KVCache, QuantizedKVCache

from mtplx_engine.cache.rollback import cache_arrays
from mtplx_engine.caching import KVFormat
from mtplx_engine.decode.sequence import Prefill, SequenceState
from mtplx_engine.models.loaded import LoadedModel

STEP: int = KVCache.step  # positions by which attention caches grow, quantised ones too

_ROWS = 16  # positions of a measuring pass; all passes together read half of the head's probe
_BEFORE = 768  # positions before it, so that what grows with them stands out
_REPEATS = 2  # how far MLX computes ahead, and so its peak, varies a little

Growing: TypeAlias = KVCache | QuantizedKVCache


@dataclass(frozen=True, slots=True)
class Measured:
    """Bytes that were measured.

    Attributes:
        per_position: Keys and values of one position, over all attention layers and the head's.
        constant: Recurrent states, and sliding windows as if they were full.
        per_row: Working memory for each position of a chunk.
        per_pair: Working memory for each position of a chunk and each that it may attend to; next
            to nothing where attention is one fused kernel, which there is none of for quantised
            keys.
    """

    per_position: int
    constant: int
    per_row: int
    per_pair: int


def measure(model: LoadedModel, kv: KVFormat | None = None) -> Measured:
    """Read a few tokens: for the caches, then without and with many positions before them."""
    sequence = SequenceState(model, model.head, kv)
    _read(model, sequence)
    caches = _flatten([*sequence.caches, *sequence.head_cache])
    growing = [cache for cache in caches if _grows(cache)]
    per_position = sum(_per_position(cache) for cache in growing)
    constant = sum(_constant(cache) for cache in caches if not _grows(cache))
    short, long = (
        [_working(model, sequence, growing, before) for _ in range(_REPEATS)]
        for before in (0, _BEFORE)
    )
    per_pair = max(max(long) - min(short), 0) // (_ROWS * _BEFORE)
    return Measured(per_position, constant, max(short) // _ROWS, per_pair)


def _working(
    model: LoadedModel, sequence: SequenceState, growing: list[Growing], before: int
) -> int:
    """Bytes that a pass takes beyond what was in use before it, the room in its caches included."""
    for cache in growing:
        _pretend(cache, before)
    sequence.length = before
    mx.eval(sequence.arrays())
    in_use = mx.get_active_memory()
    mx.reset_peak_memory()
    _read(model, sequence)
    return max(mx.get_peak_memory() - in_use, 0)


def _read(model: LoadedModel, sequence: SequenceState) -> None:
    """Read one more chunk of a prompt that is longer by a token, and wait for it."""
    tokens = [0] * (sequence.length + _ROWS + 1)
    Prefill(model, model.head, sequence, tokens, chunk=_ROWS).step()


def _pretend(cache: Growing, positions: int) -> None:
    """Make a cache hold so many positions, all zero, and have room for one more chunk."""

    def zeros(value: mx.array) -> mx.array:
        heads, width = value.shape[1], value.shape[3]
        return mx.zeros((1, heads, positions + _ROWS, width), value.dtype)

    cache.keys, cache.values = tree_map(zeros, (cache.keys, cache.values))
    cache.offset = positions


def _flatten(caches: Sequence[Any]) -> list[Any]:
    """Caches with those inside of compound ones instead of these."""
    leaves: list[Any] = []
    for cache in caches:
        leaves += _flatten(cache.caches) if isinstance(cache, CacheList) else [cache]
    return leaves


def _grows(cache: Any) -> bool:
    # A layer that borrows another's keys leaves its own cache empty.
    return isinstance(cache, Growing) and cache.keys is not None


def _per_position(cache: Growing) -> int:
    return sum(int(value.nbytes) // int(value.shape[2]) for value in cache_arrays([cache]))


def _constant(cache: Any) -> int:
    """Bytes of a recurrent state, or of a sliding window as if it were full."""
    held = sum(int(value.nbytes) for value in cache_arrays([cache]))
    window = getattr(cache, "max_size", None) or getattr(cache, "chunk_size", None)
    keys = getattr(cache, "keys", None)
    if window is None or keys is None:
        return held
    return held // int(keys.shape[2]) * int(window)
