"""What a family of models must say so that its MTP head can be attached.

A family does not subclass or patch mlx-lm's models. It points at the parts of a loaded trunk and
builds the head's block from the trunk's own layer class.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mtplx_engine.backend import mx, nn

Weights = dict[str, mx.array]


@dataclass(frozen=True, slots=True)
class TrunkParts:
    """Handles into a loaded trunk.

    Attributes:
        args: The text model's arguments, an mlx-lm dataclass.
        body: (B, S) token ids and a cache -> (B, S, H) hidden states after the final norm.
        embed: The embedding module, (B, S) -> (B, S, H).
        unembed: (..., H) -> (..., V) logits.
        unembed_module: The module whose `weight` rows `unembed` multiplies with.
        recurrent: Layers whose cache cannot be trimmed, by their index in the cache list.
    """

    args: Any
    body: Callable[..., mx.array]
    embed: nn.Module
    unembed: Callable[[mx.array], mx.array]
    unembed_module: nn.Module
    recurrent: dict[int, nn.Module]


@dataclass(frozen=True, slots=True)
class Family:
    """One architecture that can draft.

    Attributes:
        name: For people.
        default_depth: Tokens drafted per round when nobody says otherwise.
        max_depth: The largest depth that is allowed.
        zero_centred_norms: Whether raw checkpoints store RMSNorm weights as w of (1 + w).
        parts: Takes a loaded mlx-lm model apart.
        block: Builds one decoder block of the head from the text model's arguments.
        prepare: Brings raw head weights into mlx-lm's layout; keys are relative to the head.
    """

    name: str
    default_depth: int
    max_depth: int
    zero_centred_norms: bool
    parts: Callable[[nn.Module], TrunkParts]
    block: Callable[[Any], nn.Module]
    prepare: Callable[[Weights], Weights]


def tied_or_own_head(
    embed: nn.Module, owner: nn.Module, *, tied: bool
) -> tuple[Callable[[mx.array], mx.array], nn.Module]:
    """The map from hidden states to logits and the module that holds its rows."""
    if tied:
        return embed.as_linear, embed
    return owner.lm_head, owner.lm_head


def recurrent_layers(layers: Sequence[nn.Module]) -> dict[int, nn.Module]:
    """The gated-delta-net modules among a trunk's layers, by index."""
    return {i: layer.linear_attn for i, layer in enumerate(layers) if layer.is_linear}
