"""Taking the caches of a sequence apart, and building them up again.

Attention caches hold rows, one for each position, so any stretch of positions can be taken from
them and any prefix serves. Recurrent states and sliding windows hold what a sequence came to: they
are taken whole, and are right at their own position only.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mtplx_engine.backend import mx

from mlx_lm.models.cache import ArraysCache, KVCache, QuantizedKVCache, RotatingKVCache

Named = Mapping[str, mx.array]

_ROWS = {KVCache, QuantizedKVCache}
_WHOLE = {ArraysCache, RotatingKVCache}
_AXIS = 2  # of positions, in (B, heads, positions, width)


def can_be_kept(caches: Sequence[Any]) -> bool:
    """Whether every cache is of a kind that can be taken apart. Subclasses may hold more."""
    return all(type(cache) in _ROWS | _WHOLE for cache in caches)


def holds_states(caches: Sequence[Any]) -> bool:
    """Whether some cache serves its own position only."""
    return any(type(cache) in _WHOLE for cache in caches)


def take_rows(caches: Sequence[Any], start: int, end: int) -> dict[str, mx.array]:
    """Copies of the keys and values of the positions start .. end - 1, by layer and part."""
    return {
        name: mx.contiguous(value[..., start:end, :])
        for at, cache in enumerate(caches)
        if type(cache) in _ROWS
        for name, value in _parts(at, cache)
    }


def put_rows(caches: Sequence[Any], stretches: Sequence[Named]) -> None:
    """Fill fresh attention caches with rows that follow one another; they share no memory."""
    for at, cache in enumerate(caches):
        if type(cache) not in _ROWS:
            continue
        names = [name for name in stretches[0] if name.split(".")[0] == str(at)]
        if not names:  # a layer that borrows another's keys
            continue
        joined = [_join([stretch[name] for stretch in stretches]) for name in names]
        half = len(joined) // 2
        keys, values = joined[:half], joined[half:]
        quantized = isinstance(cache, QuantizedKVCache)
        cache.keys = tuple(keys) if quantized else keys[0]
        cache.values = tuple(values) if quantized else values[0]
        cache.offset = joined[0].shape[_AXIS]


def first_rows(stretch: Named, count: int) -> dict[str, mx.array]:
    """The first rows of a stretch, not copied."""
    return {name: value[..., :count, :] for name, value in stretch.items()}


def take_states(caches: Sequence[Any]) -> dict[str, mx.array]:
    """Copies of what serves its own position only; evaluate them before the caches go on."""
    states: dict[str, mx.array] = {}
    for at, cache in enumerate(caches):
        if isinstance(cache, ArraysCache):
            held = {str(part): value for part, value in enumerate(cache.cache)}
        elif isinstance(cache, RotatingKVCache):
            places = mx.array([cache.offset, cache._idx])
            held = {"keys": cache.keys, "values": cache.values, "places": places}
        else:
            continue
        for part, value in held.items():
            if value is not None:
                states[f"{at}.{part}"] = mx.contiguous(value)
    return states


def put_states(caches: Sequence[Any], states: Named) -> None:
    """Fill fresh caches with states."""
    for at, cache in enumerate(caches):
        if isinstance(cache, ArraysCache):
            for part in range(len(cache.cache)):
                if (value := states.get(f"{at}.{part}")) is not None:
                    cache[part] = mx.contiguous(value)
        elif isinstance(cache, RotatingKVCache) and f"{at}.keys" in states:
            cache.keys = mx.contiguous(states[f"{at}.keys"])
            cache.values = mx.contiguous(states[f"{at}.values"])
            offset, index = states[f"{at}.places"].tolist()  # type: ignore[misc]
            cache.offset, cache._idx = offset, index


def _parts(at: int, cache: Any) -> Iterator[tuple[str, mx.array]]:
    if cache.keys is None:
        return
    for part, held in (("keys", cache.keys), ("values", cache.values)):
        if isinstance(held, mx.array):
            yield f"{at}.{part}", held
        else:  # quantised: packed numbers, scales, biases
            for index, value in enumerate(held):
                yield f"{at}.{part}.{index}", value


def _join(rows: Sequence[mx.array]) -> mx.array:
    # Even of one stretch a new array: a cache writes into its own.
    return mx.concatenate(list(rows), axis=_AXIS) if len(rows) > 1 else mx.contiguous(rows[0])
