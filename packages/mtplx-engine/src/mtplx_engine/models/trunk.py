"""Loading a trunk with mlx-lm: strictly, without the head's tensors, in a type that is fast."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtplx_engine.backend import mx, nn, on_cpu

from mlx.utils import tree_flatten
from mlx_lm.utils import (
    _get_classes,
    dequantize_model,
    get_total_parameters,
    load_model,
    load_tokenizer,
)

from mtplx_engine.errors import ModelInvalid
from mtplx_engine.families.gated_delta import chunks_pay, use_chunked
from mtplx_engine.families.registry import family_of
from mtplx_engine.models.config import describe_quantization, one_line


@dataclass(frozen=True, slots=True)
class Trunk:
    """A loaded trunk before a head is attached.

    Attributes:
        model: mlx-lm's module.
        config: The contents of `config.json`, generation config merged in.
        tokenizer: mlx-lm's tokenizer wrapper.
        parameters: Number of logical parameters.
        quantization: For people.
        unpacked: Whether the weights were brought to float32 for the CPU.
    """

    model: nn.Module
    config: dict[str, Any]
    tokenizer: Any
    parameters: int
    quantization: str
    unpacked: bool

    @property
    def dtype(self) -> mx.Dtype:
        """The type of the activations, which the norms share."""
        parameters = tree_flatten(self.model.parameters())
        dtype: mx.Dtype = next(value.dtype for name, value in parameters if "norm" in name)
        return dtype


def load_trunk(folder: Path) -> Trunk:
    """Load a model folder.

    Raises:
        ModelInvalid: A file is missing or unreadable, the architecture is unknown to mlx-lm, or
            tensors are missing or left over; the message names them.
    """
    try:
        model, config = load_model(folder, lazy=True, get_model_classes=_classes_without_head)
        # Without this, the end tokens of `generation_config.json` would be ignored.
        text = config.get("text_config") or {}
        end_tokens = config.get("eos_token_id", text.get("eos_token_id"))
        tokenizer = load_tokenizer(folder, eos_token_ids=end_tokens)
        parameters = get_total_parameters(model)
        unpacked = on_cpu() and _unpack(model, parameters)
        mx.eval(model.parameters())
        _hasten_prefill(model, config)
    except Exception as error:  # mlx-lm and transformers raise anything over a damaged file
        raise ModelInvalid(f"{folder} cannot be loaded: {one_line(error)}") from error
    return Trunk(model, config, tokenizer, parameters, describe_quantization(config), unpacked)


def _classes_without_head(config: dict[str, Any]) -> tuple[type[nn.Module], type]:
    """mlx-lm's classes, with a `sanitize` that first drops the head's tensors.

    mlx-lm drops them itself for raw checkpoints only; a converted Qwen3-Next pack that kept them
    would fail its strict load.
    """
    model_class, args_class = _get_classes(config=config)

    class WithoutHead(model_class):  # type: ignore[misc, valid-type]
        def sanitize(self, weights: dict[str, mx.array]) -> dict[str, mx.array]:
            trunk = {name: value for name, value in weights.items() if "mtp." not in name}
            if hasattr(super(), "sanitize"):
                trunk = super().sanitize(trunk)
            return trunk

    WithoutHead.__name__ = model_class.__name__
    return WithoutHead, args_class


def _hasten_prefill(model: nn.Module, config: dict[str, Any]) -> None:
    """Let recurrent layers read prompts in chunks where that is faster.

    With a head or without: an answer must not depend on whether it was drafted.
    """
    family = family_of(config)
    if family is not None and chunks_pay():
        for layer in family.parts(model).recurrent.values():
            use_chunked(layer)


def _unpack(model: nn.Module, parameters: int) -> bool:
    """Bring the weights to float32 where that fits comfortably; return whether it was done.

    On the CPU, MLX's quantised and half-precision products are many times slower than float32
    ones, and grow linearly with the number of rows, which would make every draft cost a step.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if parameters * 4 > memory // 3:
        return False
    dequantize_model(model)
    model.set_dtype(mx.float32)
    return True
