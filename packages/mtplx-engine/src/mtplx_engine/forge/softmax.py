"""The normaliser of a law, with a gradient that costs no second exponential."""

import math
from typing import cast

from mtplx_engine.backend import mx


def exponential(values: mx.array) -> mx.array:
    """Raise e to the given powers, in float32.

    MLX's CPU backend takes three times longer over `exp` on x86 than over `power`.
    """
    return mx.power(math.e, values)


def log_sum_exp(logits: mx.array) -> tuple[mx.array, mx.array]:
    """(..., V) logits -> (...) logarithms of their summed exponentials, and (..., V) the law.

    The law is for reading only: no gradient comes back through it.
    """
    log_norm, law = cast("tuple[mx.array, mx.array]", _normalise(logits))
    return log_norm, law


@mx.custom_function
def _normalise(logits: mx.array) -> tuple[mx.array, mx.array]:
    largest = mx.max(logits, axis=-1, keepdims=True)
    exponentials = exponential(logits - largest)
    total = mx.sum(exponentials, axis=-1, keepdims=True)
    return (mx.log(total) + largest).squeeze(-1), exponentials / total


@_normalise.vjp
def _gradient(
    _: mx.array, cotangents: tuple[mx.array, mx.array], outputs: tuple[mx.array, mx.array]
) -> mx.array:
    """The normaliser's gradient is the law, which need not be computed again."""
    return cotangents[0][..., None] * outputs[1]
