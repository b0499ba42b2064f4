"""Caches with quantised keys and values: making them, and which of them a model can read."""

from dataclasses import dataclass
from typing import Any

from mtplx_engine.backend import mx, nn

from mlx_lm.models.cache import (
    ArraysCache,
    ChunkedKVCache,
    KVCache,
    QuantizedKVCache,
    RotatingKVCache,
    make_prompt_cache,
)

from mtplx_engine.caching import KV_GROUP_SIZES, KVFormat
from mtplx_engine.models.config import one_line

_BOUNDED = (ArraysCache, ChunkedKVCache, RotatingKVCache)  # of no length, or of a bounded one


@dataclass(frozen=True, slots=True)
class Quantisable:
    """The outcome.

    Attributes:
        groups: Group sizes that fit, the best first; empty when nothing can be quantised.
        obstacle: Why not, as a clause; empty when it can.
    """

    groups: tuple[int, ...] = ()
    obstacle: str = ""


def quantise(caches: list[Any], kv: KVFormat) -> list[Any]:
    """Empty caches of one sequence, with quantised ones where keys and values grow with the text.

    Recurrent states and sliding windows, which do not grow, stay as they are.
    """
    return [
        QuantizedKVCache(kv.group_size, kv.bits) if _grows(cache) else cache for cache in caches
    ]


def quantisable(model: nn.Module) -> Quantisable:
    """Look at the caches of a model, and let it read a few tokens with quantised ones.

    Some attention layers do not take quantised keys: those with sinks, and those that keep a
    latent and compute keys from it. They fail at once, so trying is the test.
    """
    caches = make_prompt_cache(model)
    strange = {type(each).__name__ for each in caches if not (_grows(each) or _bounded(each))}
    if strange:
        return Quantisable(obstacle=f"nothing quantises its {', '.join(sorted(strange))}")
    dims = _dims(model, caches)
    if not dims:
        return Quantisable(obstacle="none of its caches grows with the text")
    groups = tuple(size for size in KV_GROUP_SIZES if not any(dim % size for dim in dims))
    if not groups:
        sizes = " and ".join(map(str, sorted(dims)))
        return Quantisable(obstacle=f"its keys and values are {sizes} wide, which no group divides")
    try:
        _try(model, KVFormat(8, groups[0]))
    except Exception as error:  # whatever its code makes of keys that are no array
        return Quantisable(obstacle=f"its attention does not take them ({one_line(error)})")
    return Quantisable(groups)


def _grows(cache: Any) -> bool:
    return type(cache) is KVCache


def _bounded(cache: Any) -> bool:
    return isinstance(cache, _BOUNDED)


def _dims(model: nn.Module, caches: list[Any]) -> set[int]:
    """Widths of keys and values, read off the shapes of a lazy pass that is never computed."""
    model(mx.array([[0]]), cache=caches)
    # A layer that borrows another's keys leaves its own cache empty.
    filled = [cache for cache in caches if _grows(cache) and cache.keys is not None]
    return {int(value.shape[-1]) for cache in filled for value in (cache.keys, cache.values)}


def _try(model: nn.Module, kv: KVFormat) -> None:
    """Read several tokens at once, then one: these take different paths."""
    caches = quantise(make_prompt_cache(model), kv)
    for tokens in ([0, 0, 0], [0]):
        mx.eval(model(mx.array([tokens]), cache=caches))
