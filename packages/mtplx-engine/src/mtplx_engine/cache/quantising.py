"""Caches that keep keys and values quantised, in place of those that do not."""

from typing import Any

from mlx_lm.models.cache import KVCache, QuantizedKVCache

from mtplx_engine.caching import KVFormat


def quantise(caches: list[Any], kv: KVFormat) -> list[Any]:
    """Empty caches of one sequence, with quantised ones where keys and values grow with the text.

    Recurrent states and sliding windows, which do not grow, stay as they are.
    """
    return [QuantizedKVCache(kv.group_size, kv.bits) if grows(cache) else cache for cache in caches]


def grows(cache: Any) -> bool:
    """Whether a cache is one that `quantise` replaces."""
    return type(cache) is KVCache
