"""Taking positions back from a recurrent layer without running the model again.

A gated delta net keeps a running state, not one entry per position, so it cannot be trimmed. While
a verify pass runs, the tape keeps what went into each layer's convolution and recurrence. When
only `keep` of the positions stand, the convolution state is a slice of what was recorded, and the
recurrent state is the recurrence run again over the first `keep` positions from the state before
the pass: the same kernel on the same numbers, so the result is bit for bit that of a pass over
those positions alone. (Gated Delta Networks, arXiv 2412.06464.)

mlx-lm is not patched. Each recurrent layer gets a class of its own whose `__call__` is mlx-lm's
code over a copy of its globals, in which `gated_delta_update` records its arguments.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mtplx_engine.backend import mx, nn

from mlx_lm.models.cache import ArraysCache

Update = Callable[..., tuple[mx.array, mx.array]]


@dataclass(slots=True)
class LayerTape:
    """What one layer did in the last recorded pass."""

    kernel: int
    recording: bool = False
    conv_input: mx.array | None = None
    update: Update | None = None
    inputs: tuple[mx.array, ...] = ()
    weights: tuple[mx.array, ...] = ()
    state: mx.array | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def rewind(self, cache: ArraysCache, keep: int) -> None:
        """Set the layer's cache to what it held after the first `keep` recorded positions."""
        assert self.conv_input is not None
        assert self.update is not None
        cache[0] = mx.contiguous(self.conv_input[:, keep : keep + self.kernel - 1])
        inputs = (value[:, :keep] for value in self.inputs)
        _, cache[1] = self.update(*inputs, *self.weights, self.state, None, **self.options)

    def clear(self) -> None:
        """Let go of the recorded arrays; they keep the whole pass alive."""
        self.conv_input, self.state, self.inputs = None, None, ()


class Tape:
    """Records the recurrent layers of one trunk during a pass of more than one position."""

    def __init__(self, layers: dict[int, nn.Module]) -> None:
        self._layers = {index: _attach(layer) for index, layer in layers.items()}

    def __enter__(self) -> "Tape":
        for layer in self._layers.values():
            layer.recording = True
        return self

    def __exit__(self, *_: object) -> None:
        for layer in self._layers.values():
            layer.recording = False

    def rewind(self, caches: list[Any], keep: int) -> None:
        """Set the recurrent caches among `caches` to the first `keep` recorded positions."""
        for index, layer in self._layers.items():
            layer.rewind(caches[index], keep)

    def clear(self) -> None:
        """Let go of what was recorded."""
        for layer in self._layers.values():
            layer.clear()


def _attach(layer: nn.Module) -> LayerTape:
    tape = LayerTape(kernel=layer.conv_kernel_size)
    _record_convolution(layer, tape)
    _record_recurrence(layer, tape)
    return tape


def _record_convolution(layer: nn.Module, tape: LayerTape) -> None:
    plain = type(layer.conv1d)

    def call(self: nn.Module, x: mx.array) -> mx.array:
        if tape.recording:
            tape.conv_input = x
        convolved: mx.array = plain.__call__(self, x)
        return convolved

    layer.conv1d.__class__ = type(plain.__name__, (plain,), {"__call__": call})


def _record_recurrence(layer: nn.Module, tape: LayerTape) -> None:
    plain = type(layer)
    code = plain.__call__
    update: Update = code.__globals__["gated_delta_update"]
    tape.update = update

    def recorded(
        q: mx.array,
        k: mx.array,
        v: mx.array,
        a: mx.array,
        b: mx.array,
        a_log: mx.array,
        dt_bias: mx.array,
        state: mx.array | None = None,
        mask: mx.array | None = None,
        **options: Any,
    ) -> tuple[mx.array, mx.array]:
        if tape.recording:
            tape.inputs, tape.weights = (q, k, v, a, b), (a_log, dt_bias)
            tape.state, tape.options = state, options
        return update(q, k, v, a, b, a_log, dt_bias, state, mask, **options)

    own_globals = {**code.__globals__, "gated_delta_update": recorded}
    call = types.FunctionType(
        code.__code__, own_globals, code.__name__, code.__defaults__, code.__closure__
    )
    layer.__class__ = type(plain.__name__, (plain,), {"__call__": call})
