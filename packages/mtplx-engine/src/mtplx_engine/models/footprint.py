"""How much memory a model needs, from its settings and file headers alone."""

from dataclasses import dataclass
from math import prod
from typing import Any

from mtplx_engine.models.head_files import TensorHeader

_STATE_BYTES = 4  # recurrent layers keep their state in float32
_ACTIVATION_BYTES = {"F32": 4, "F16": 2, "BF16": 2}


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a conversation costs besides the weights.

    Attributes:
        per_token_bytes: Keys and values of one token over all attention layers.
        state_bytes: State of the recurrent layers, whatever the length.
    """

    per_token_bytes: int
    state_bytes: int


def count_parameters(tensors: dict[str, TensorHeader], quantization: dict[str, Any]) -> int:
    """Logical parameters: what a packed tensor stands for, not the words it is packed into.

    Args:
        tensors: Name -> header.
        quantization: mlx-lm's settings, `{}` when nothing is packed.
    """
    total = 0
    for name, tensor in tensors.items():
        path, _, kind = name.rpartition(".")
        scales = tensors.get(f"{path}.scales")
        if scales is None:
            total += prod(tensor.shape)
        elif kind == "weight":
            settings = quantization.get(path)
            settings = settings if isinstance(settings, dict) else quantization
            total += prod(scales.shape) * int(settings.get("group_size", 64))
        elif kind == "bias":
            total += prod(tensor.shape)
    return total


def conversation_footprint(config: dict[str, Any], tensors: dict[str, TensorHeader]) -> Footprint:
    """Memory that one conversation takes; sliding windows are counted as if they never slid.

    Args:
        config: The text model's settings.
        tensors: Name -> header; the norms tell the type of the activations.
    """
    layers = int(config.get("num_hidden_layers") or 0)
    recurrent = _recurrent_layers(config, layers)
    norms = (tensor.dtype for name, tensor in tensors.items() if "norm" in name)
    value_bytes = _ACTIVATION_BYTES.get(next(norms, "F16"), 2)
    return Footprint(
        per_token_bytes=(layers - recurrent) * _values_per_token(config) * value_bytes,
        state_bytes=recurrent * _state_values(config) * _STATE_BYTES,
    )


def _recurrent_layers(config: dict[str, Any], layers: int) -> int:
    kinds = config.get("layer_types")
    if kinds:
        return sum(kind == "linear_attention" for kind in kinds)
    if "linear_num_value_heads" not in config:
        return 0
    return layers - layers // int(config.get("full_attention_interval") or 4)


def _values_per_token(config: dict[str, Any]) -> int:
    """Cached values of one token in one attention layer."""
    if config.get("kv_lora_rank"):  # latent attention caches one shared vector and the rope key
        return int(config["kv_lora_rank"]) + int(config.get("qk_rope_head_dim") or 0)
    heads = int(config.get("num_attention_heads") or 1)
    head_dim = int(config.get("head_dim") or int(config.get("hidden_size") or 0) // heads)
    return 2 * int(config.get("num_key_value_heads") or heads) * head_dim


def _state_values(config: dict[str, Any]) -> int:
    """Values in the state of one gated-delta-net layer, its convolution window included."""
    value_heads = int(config.get("linear_num_value_heads") or 0)
    key_heads = int(config.get("linear_num_key_heads") or 0)
    key_dim = int(config.get("linear_key_head_dim") or 0)
    value_dim = int(config.get("linear_value_head_dim") or 0)
    window = int(config.get("linear_conv_kernel_dim") or 1) - 1
    channels = 2 * key_heads * key_dim + value_heads * value_dim
    return value_heads * key_dim * value_dim + window * channels
