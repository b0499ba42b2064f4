"""The device's memory: limits set at load, what is left of it, and what a request took."""

import os
import sys
from dataclasses import dataclass

from mtplx_engine.backend import mx, on_cpu

from mtplx_engine.runtime import host_memory

_LARGEST_POOL = 2**30  # bytes
_POOL_SHARE = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What `apply_limits` set, in bytes; None where MLX's own setting stands.

    Attributes:
        pool: Freed buffers that MLX keeps for the next allocation.
        wired: Memory that macOS may not page out.
    """

    pool: int | None = None
    wired: int | None = None


def apply_limits() -> Limits:
    """Bound MLX's pool of freed buffers and, on Metal, keep the weights resident.

    Call it on the MLX thread before the first model is loaded.

    The pool: on the CPU MLX bounds it at 32 MiB. On a GPU its default is most of the device or
    more, and others (mlx-lm, mlx-vlm) only empty it now and then. That is not enough here: when
    the caches of a long conversation grow, the outgrown ones, gigabytes that no later allocation
    fits, would stay in the pool until it is emptied next. What the pool is for, the temporaries of
    one step used again by the next layer, are tens to hundreds of megabytes. So it gets a sixteenth
    of the device and at most 1 GiB.

    Wiring: without it macOS pages weights out between requests, and the next one starts slowly.
    The limit is a ceiling and reserves nothing: only memory in use is wired. It is the largest
    that Metal recommends, as in mlx-lm; more is an error.
    """
    device = _device_bytes()
    if device is None:
        return Limits()
    pool = min(device // _POOL_SHARE, _LARGEST_POOL)
    mx.set_cache_limit(pool)
    if not mx.metal.is_available():
        return Limits(pool)
    mx.set_wired_limit(device)
    return Limits(pool, device)


def available_bytes() -> int | None:
    """How much more memory this process may take; None when nothing tells.

    On Metal this is what Metal recommends as a working set less what this process uses of it; on
    CUDA what is free on the device; on the CPU see `host_memory`. MLX's pool of freed buffers can
    be taken again, so it counts as free.
    """
    if on_cpu():
        return _host_bytes()
    device = _device_bytes()
    if device is None:
        return None
    ours = device - mx.get_active_memory()
    free = mx.device_info().get("free_memory")
    if free is not None:  # CUDA, where other processes have a share
        ours = min(ours, int(free) + mx.get_cache_memory())
    return max(ours, 0)


def _device_bytes() -> int | None:
    """Memory that MLX can use on the GPU; None on the CPU or when MLX does not know."""
    if on_cpu():
        return None
    info = mx.device_info()
    size = info.get("max_recommended_working_set_size") or info.get("total_memory")
    return int(size) if size else None


def _host_bytes() -> int | None:
    if sys.platform == "linux":
        left = host_memory.available()
        return None if left is None else left + mx.get_cache_memory()
    # macOS without Metal, such as a virtual machine: what others use cannot be read cheaply.
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(total - mx.get_active_memory(), 0)


class PeakMeter:
    """The most memory in use while one request had its turns.

    Requests share a thread and take turns, and MLX has one peak for all. So the work of each turn
    is measured by itself: `with meter: ...`. What the turns of others took for a moment does not
    count; what they keep, their caches, and the weights do, for they are in use at that time. A
    round that was started ahead may work on in the turn of another and then counts there; it is
    narrow, so that this is little beside the reading of a prompt.
    """

    def __init__(self) -> None:
        self._bytes = 0

    def __enter__(self) -> "PeakMeter":
        mx.reset_peak_memory()
        return self

    def __exit__(self, *_: object) -> None:
        self._bytes = max(self._bytes, mx.get_peak_memory())

    @property
    def bytes(self) -> int:
        """The peak of all turns so far; 0 before the first."""
        return self._bytes
