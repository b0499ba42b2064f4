"""Undoing the last positions of a trunk's caches: attention by trimming, recurrence by tape."""

from typing import Any

from mtplx_engine.backend import mx

from mlx_lm.models.cache import ArraysCache, KVCache, QuantizedKVCache

from mtplx_engine.cache.tape import Recording, Tape

_TRIMMED = (KVCache, QuantizedKVCache)


def can_roll_back(caches: list[Any], tape: Tape | None) -> bool:
    """Whether every cache of this trunk can give positions back."""
    return all(
        isinstance(cache, _TRIMMED) or (isinstance(cache, ArraysCache) and tape is not None)
        for cache in caches
    )


def roll_back(caches: list[Any], recording: Recording | None, *, fed: int, keep: int) -> None:
    """Leave the first `keep` of the `fed` positions that the last pass added.

    Args:
        caches: The trunk's caches, one per layer.
        recording: Of that pass; None for a trunk without recurrent layers.
        fed: Positions the pass was fed.
        keep: Positions that stand, at least one.
    """
    if keep == fed:
        return
    for cache in caches:
        if isinstance(cache, _TRIMMED):
            cache.trim(fed - keep)
        elif not isinstance(cache, ArraysCache) or recording is None:
            raise TypeError(f"{type(cache).__name__} cannot give positions back")
    if recording is not None:
        recording.rewind(caches, keep)


def cache_arrays(caches: list[Any]) -> list[mx.array]:
    """The arrays behind a list of caches, for `mx.eval`."""
    arrays: list[mx.array] = []
    for cache in caches:
        held = cache.cache if isinstance(cache, ArraysCache) else cache.state
        arrays += [value for value in _flatten(held) if isinstance(value, mx.array)]
    return arrays


def _flatten(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flatten(item)]
    return [value]
