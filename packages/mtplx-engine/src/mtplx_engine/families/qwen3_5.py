"""Qwen3.5, 3.6 and 3.8: gated delta nets with every fourth layer full attention.

The head is one full-attention block (transformers: `Qwen3_5MTP`; vLLM: `qwen3_5_mtp`). It shares
the embedding and the output head with the trunk.
"""

from typing import Any

from mtplx_engine.backend import nn

from mlx_lm.models.qwen3_5 import DecoderLayer

from mtplx_engine.families.base import (
    Family,
    TrunkParts,
    recurrent_layers,
    tied_or_own_head,
)
from mtplx_engine.families.experts import stack_experts


def _parts(model: nn.Module) -> TrunkParts:
    text = model.language_model
    embed = text.model.embed_tokens
    unembed, rows = tied_or_own_head(embed, text, tied=text.args.tie_word_embeddings)
    return TrunkParts(
        text.args, text.model, embed, unembed, rows, recurrent_layers(text.model.layers)
    )


def _block(args: Any) -> nn.Module:
    # A layer is full attention when its number is a multiple of the interval.
    return DecoderLayer(args, layer_idx=args.full_attention_interval - 1)


FAMILY = Family(
    name="Qwen3.5",
    default_depth=2,
    max_depth=8,
    zero_centred_norms=True,
    parts=_parts,
    block=_block,
    prepare=stack_experts,
)
