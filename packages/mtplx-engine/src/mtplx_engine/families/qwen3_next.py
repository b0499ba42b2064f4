"""Qwen3-Next: the layout of Qwen3.5 with a mixture of experts in every block.

Head: vLLM `qwen3_next_mtp`; the transformers class ignores its tensors.
"""

from typing import Any

from mtplx_engine.backend import nn

from mlx_lm.models.qwen3_next import Qwen3NextDecoderLayer

from mtplx_engine.families.base import (
    Family,
    TrunkParts,
    recurrent_layers,
    tied_or_own_head,
)
from mtplx_engine.families.experts import stack_experts


def _parts(model: nn.Module) -> TrunkParts:
    embed = model.model.embed_tokens
    unembed, rows = tied_or_own_head(embed, model, tied=model.args.tie_word_embeddings)
    return TrunkParts(
        model.args, model.model, embed, unembed, rows, recurrent_layers(model.model.layers)
    )


def _block(args: Any) -> nn.Module:
    """A block that is both full attention and, where the trunk has experts, sparse.

    mlx-lm decides both by the layer's index, so one is searched that has both properties.
    """
    interval, step = args.full_attention_interval, args.decoder_sparse_step
    candidates = range(interval - 1, args.num_hidden_layers + interval * step, interval)
    sparse = (i for i in candidates if (i + 1) % step == 0 and i not in args.mlp_only_layers)
    return Qwen3NextDecoderLayer(args, layer_idx=next(sparse, interval - 1))


FAMILY = Family(
    name="Qwen3-Next",
    default_depth=2,
    max_depth=8,
    zero_centred_norms=True,
    parts=_parts,
    block=_block,
    prepare=stack_experts,
)
