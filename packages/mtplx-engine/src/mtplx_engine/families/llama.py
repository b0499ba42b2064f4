"""Llama-type trunks. No published checkpoint has a head; ours are trained, one Llama block each."""

from typing import Any

from mtplx_engine.backend import nn

from mlx_lm.models.llama import TransformerBlock

from mtplx_engine.families.base import Family, TrunkParts, Weights, tied_or_own_head


def _parts(model: nn.Module) -> TrunkParts:
    embed = model.model.embed_tokens
    unembed, rows = tied_or_own_head(embed, model, tied=model.args.tie_word_embeddings)
    return TrunkParts(model.args, model.model, embed, unembed, rows, recurrent={})


def _block(args: Any) -> nn.Module:
    return TransformerBlock(args)


def _prepare(weights: Weights) -> Weights:
    """Our first heads called their one block `layer`."""
    return {
        f"layers.0.{name.removeprefix('layer.')}" if name.startswith("layer.") else name: value
        for name, value in weights.items()
    }


FAMILY = Family(
    name="Llama",
    default_depth=1,
    max_depth=8,
    zero_centred_norms=False,
    parts=_parts,
    block=_block,
    prepare=_prepare,
)
