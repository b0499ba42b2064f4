"""Which family an mlx-lm model type belongs to. The family's module is imported when needed."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `can_draft` answers without MLX
    from mtplx_engine.families.base import Family

_FAMILIES = {
    "llama": "mtplx_engine.families.llama:FAMILY",
    "qwen3_5": "mtplx_engine.families.qwen3_5:FAMILY",
    "qwen3_5_moe": "mtplx_engine.families.qwen3_5:FAMILY",
    "qwen3_next": "mtplx_engine.families.qwen3_next:FAMILY",
}


def can_draft(model_type: str) -> bool:
    """Whether heads of this mlx-lm model type can be attached."""
    return model_type in _FAMILIES


def family_of(config: dict[str, Any]) -> "Family | None":
    """The family of a model by its `config.json`, or None when it cannot draft."""
    reference = _FAMILIES.get(config.get("model_type", ""))
    if reference is None:
        return None
    module, name = reference.split(":")
    family: Family = getattr(importlib.import_module(module), name)
    return family
