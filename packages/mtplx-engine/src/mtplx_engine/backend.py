"""The one door to MLX: picks the linear-algebra library, then imports `mlx.core`.

On Linux the PyPI build of MLX links the reference BLAS, which makes a matrix product many times
slower than OpenBLAS. Loading OpenBLAS with global symbols before `mlx.core` makes the dynamic
loader bind MLX to it. With MLX's own BLAS a forward pass over k tokens equals k passes over one
token bit for bit on the CPU; with OpenBLAS it differs by about 1e-5 of the largest logit. Hence
the switch: `MTPLX_BLAS=mlx` keeps MLX's own, `openblas` insists, `auto` (the default) takes
OpenBLAS where it is installed.

Every module of this package that needs MLX imports it from here.
"""

import ctypes
import os
import sys
from typing import cast

from mtplx_engine.errors import EngineError

_OPENBLAS = "libopenblas.so.0"


def _choose_blas() -> str:
    """Load OpenBLAS if it is wanted, there and not too late; return what MLX will use."""
    choice = os.environ.get("MTPLX_BLAS", "auto")
    if choice not in ("auto", "openblas", "mlx"):
        raise EngineError(f"MTPLX_BLAS must be auto, openblas or mlx; got {choice!r}.")
    if sys.platform != "linux":
        return "Accelerate"
    if choice == "mlx":
        return "MLX's own BLAS"
    if "mlx.core" in sys.modules:
        if choice == "openblas":
            raise EngineError("MTPLX_BLAS=openblas: mlx was imported before mtplx_engine.")
        return "MLX's own BLAS (mlx was imported before mtplx_engine)"
    try:
        ctypes.CDLL(_OPENBLAS, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        if choice == "openblas":
            raise EngineError(f"MTPLX_BLAS=openblas: {_OPENBLAS} cannot be loaded.") from error
        return "MLX's own BLAS (slow; install libopenblas0-pthread)"
    return "OpenBLAS"


BLAS = _choose_blas()

try:
    import mlx.core as mx
    import mlx.nn as nn
except ImportError as error:
    raise EngineError(
        f"MLX cannot be loaded ({error}). On Linux one of its builds must be asked for: install"
        " mtplx-engine[cpu], mtplx-engine[cuda12] or mtplx-engine[cuda13]."
    ) from error

__all__ = ["BLAS", "describe", "mx", "nn", "on_cpu", "read_float", "read_ints"]


def on_cpu() -> bool:
    """Whether MLX computes on the CPU here."""
    return bool(mx.default_device() == mx.cpu)


def read_ints(values: mx.array) -> list[int]:
    """Wait for a one-dimensional integer array and copy it to the host."""
    return cast("list[int]", values.tolist())


def read_float(value: mx.array) -> float:
    """Wait for a scalar and copy it to the host."""
    return float(cast("float", value.item()))


def describe() -> str:
    """Device and BLAS in one phrase, for banners and `/health`."""
    if not on_cpu():
        return "Metal" if mx.metal.is_available() else "CUDA"
    return f"CPU, {BLAS}"
