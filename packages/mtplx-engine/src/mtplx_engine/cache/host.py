"""Between MLX arrays and bytes that other threads may hold."""

from collections.abc import Mapping

from mtplx_engine.backend import mx

import numpy as np

from mtplx_engine.disk.blocks import Arrays, HostArray

_NAMES = {
    mx.float32: "F32",
    mx.float16: "F16",
    mx.bfloat16: "BF16",
    mx.uint32: "U32",
    mx.uint8: "U8",
    mx.int32: "I32",
    mx.int64: "I64",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def to_host(arrays: Mapping[str, mx.array]) -> Arrays:
    """Copy arrays into bytes that do not belong to MLX. Waits for their values."""
    return {
        name: HostArray(
            _NAMES[value.dtype],
            tuple(value.shape),
            np.array(mx.contiguous(value).reshape(-1).view(mx.uint8)).data,
        )
        for name, value in arrays.items()
    }


def to_device(arrays: Arrays) -> dict[str, mx.array]:
    """Copy bytes into arrays."""
    return {
        name: mx.array(np.frombuffer(held.data, dtype=np.uint8))
        .view(_DTYPES[held.dtype])
        .reshape(held.shape)
        for name, held in arrays.items()
    }
