"""Whether a head's RMSNorm weights are stored as w or as w of (1 + w), and putting it right.

Qwen checkpoints store zero-centred weights (transformers: `Qwen3NextRMSNorm`), MLX multiplies with
absolute ones, and packs in the wild hold either, some a mixture. The decision is made once for a
whole head, never per tensor, and never from the `pre_fc_norm_*` weights: their absolute means are
below 0.5 in real checkpoints, so they look zero-centred in both conventions.
"""

from typing import Literal

from mtplx_engine.backend import mx, read_float

from mtplx_engine.families.base import Weights

Shift = Literal["none", "all", "layers"]

_LAYER_NORMS = (
    "input_layernorm.weight",
    "post_attention_layernorm.weight",
    "q_norm.weight",
    "k_norm.weight",
)
_OUTER_NORMS = ("pre_fc_norm_embedding.weight", "pre_fc_norm_hidden.weight", "norm.weight")

_STATED: dict[str, Shift] = {"absolute": "none", "zero_centred": "all"}


def stated_shift(norms: str | None, *, beside_raw_trunk: bool) -> Shift | None:
    """The shift that is known for sure, or None when it must be judged.

    Args:
        norms: What the file says: `absolute`, `zero_centred` or nothing.
        beside_raw_trunk: The head lies in the shards of an unconverted checkpoint.
    """
    if norms in _STATED:
        return _STATED[norms]
    return "all" if beside_raw_trunk else None


def likely_shift(weights: Weights) -> Shift:
    """Judge by the block's own norms: zero-centred ones are small, absolute ones near one."""
    means = [
        read_float(mx.mean(value.astype(mx.float32)))
        for name, value in weights.items()
        if name.startswith("layers.") and name.endswith(_LAYER_NORMS)
    ]
    return "all" if means and min(means) < 0.5 and max(means) < 1.25 else "none"


def shift_norms(weights: Weights, shift: Shift) -> Weights:
    """Add one to the norm weights that `shift` covers; everything else passes."""
    covered = {"none": (), "layers": _LAYER_NORMS, "all": _LAYER_NORMS + _OUTER_NORMS}[shift]
    return {
        name: value + 1.0 if covered and _is_norm(name, covered) else value
        for name, value in weights.items()
    }


def _is_norm(name: str, covered: tuple[str, ...]) -> bool:
    if name.startswith("layers."):
        return name.endswith(_LAYER_NORMS)
    return name in covered
