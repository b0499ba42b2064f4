"""Taking positions back from a recurrent layer without running the model again.

A gated delta net keeps a running state, not one entry per position, so it cannot be trimmed. While
a verify pass runs, the tape keeps what went into each layer's convolution and recurrence. When
only `keep` of the positions stand, the convolution state is a slice of what was recorded, and the
recurrent state is the recurrence run again over the first `keep` positions from the state before
the pass: the same kernel on the same numbers, so the result is bit for bit that of a pass over
those positions alone. (Gated Delta Networks, arXiv 2412.06464.)

mlx-lm's modules and classes stay as they are. But the `__class__` of each recurrent layer, and of
its convolution, is set to a class of its own. In the layer's, `gated_delta_update` records its
arguments, see `replace_update`; in the convolution's, `__call__` does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mtplx_engine.backend import mx, nn

from mlx_lm.models.cache import ArraysCache

from mtplx_engine.families.gated_delta import Update, current_update, replace_update


@dataclass(slots=True)
class LayerRecord:
    """What went into one layer in one pass.

    Attributes:
        kernel: Width of the convolution.
        update: mlx-lm's recurrence.
        conv_input: (B, kernel - 1 + S, C), the state before the pass and its own rows.
        inputs: Of the recurrence, each (B, S, ...).
        weights: Of the recurrence.
        state: Before the pass.
        options: Of the recurrence.
    """

    kernel: int
    update: Update
    conv_input: mx.array | None = None
    inputs: tuple[mx.array, ...] = ()
    weights: tuple[mx.array, ...] = ()
    state: mx.array | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def rewind(self, cache: ArraysCache, keep: int) -> None:
        """Set the layer's cache to what it held after the first `keep` recorded positions."""
        assert self.conv_input is not None
        cache[0] = mx.contiguous(self.conv_input[:, keep : keep + self.kernel - 1])
        inputs = (value[:, :keep] for value in self.inputs)
        _, cache[1] = self.update(*inputs, *self.weights, self.state, None, **self.options)


class Recording:
    """One pass, as its recurrent layers saw it. Drop it soon: it keeps the whole pass alive."""

    def __init__(self, layers: dict[int, LayerRecord]) -> None:
        self._layers = layers

    def rewind(self, caches: list[Any], keep: int) -> None:
        """Set the recurrent caches among `caches` to the first `keep` recorded positions."""
        for index, layer in self._layers.items():
            layer.rewind(caches[index], keep)


@dataclass(slots=True)
class LayerTape:
    """The recorder of one layer; it records while it holds a record."""

    kernel: int
    update: Update
    record: LayerRecord | None = None


class Tape:
    """Records the recurrent layers of one trunk during a pass of more than one position.

    Args:
        layers: By their index in the cache list. `use_chunked` comes before this, where it is
            wanted: what it adds must be inside of what is recorded.
    """

    def __init__(self, layers: dict[int, nn.Module]) -> None:
        self._layers = {index: _attach(layer) for index, layer in layers.items()}

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """Record the pass inside the context."""
        records = {i: LayerRecord(layer.kernel, layer.update) for i, layer in self._layers.items()}
        for index, layer in self._layers.items():
            layer.record = records[index]
        try:
            yield Recording(records)
        finally:
            for layer in self._layers.values():
                layer.record = None


def _attach(layer: nn.Module) -> LayerTape:
    tape = LayerTape(layer.conv_kernel_size, current_update(layer))
    _record_convolution(layer, tape)
    _record_recurrence(layer, tape)
    return tape


def _record_convolution(layer: nn.Module, tape: LayerTape) -> None:
    plain = type(layer.conv1d)

    def call(self: nn.Module, x: mx.array) -> mx.array:
        if tape.record is not None:
            tape.record.conv_input = x
        convolved: mx.array = plain.__call__(self, x)
        return convolved

    layer.conv1d.__class__ = type(plain.__name__, (plain,), {"__call__": call})


def _record_recurrence(layer: nn.Module, tape: LayerTape) -> None:
    def recording(update: Update) -> Update:
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
            if (record := tape.record) is not None:
                record.inputs, record.weights = (q, k, v, a, b), (a_log, dt_bias)
                record.state, record.options = state, options
            return update(q, k, v, a, b, a_log, dt_bias, state, mask, **options)

        return recorded

    replace_update(layer, recording)
