"""Expert weights of raw checkpoints, brought into mlx-lm's stacked layout.

mlx-lm does this for the trunk's layers only (`sanitize` of qwen3_next and qwen3_5_moe).
"""

import re

from mtplx_engine.backend import mx

from mtplx_engine.families.base import Weights

_ONE_EXPERT = re.compile(r"(?P<mlp>.*\.mlp)\.experts\.(?P<index>\d+)\.(?P<tensor>.+)")


def stack_experts(weights: Weights) -> Weights:
    """Stack `experts.<e>.*` and split the fused `experts.gate_up_proj`; other names pass.

    Shapes: E tensors (M, H) become one (E, M, H); a fused (E, 2M, H) becomes two (E, M, H), gate
    first.
    """
    stacked: Weights = {}
    by_target: dict[str, dict[int, mx.array]] = {}
    for name, value in weights.items():
        if match := _ONE_EXPERT.fullmatch(name):
            target = f"{match['mlp']}.switch_mlp.{match['tensor']}"
            by_target.setdefault(target, {})[int(match["index"])] = value
        elif name.endswith(".experts.gate_up_proj"):
            mlp = name.removesuffix(".experts.gate_up_proj")
            gate, up = mx.split(value, 2, axis=-2)
            stacked[f"{mlp}.switch_mlp.gate_proj.weight"] = gate
            stacked[f"{mlp}.switch_mlp.up_proj.weight"] = up
        elif name.endswith(".experts.down_proj"):
            mlp = name.removesuffix(".experts.down_proj")
            stacked[f"{mlp}.switch_mlp.down_proj.weight"] = value
        else:
            stacked[name] = value
    for target, experts in by_target.items():
        stacked[target] = mx.stack([experts[i] for i in sorted(experts)])
    return stacked
