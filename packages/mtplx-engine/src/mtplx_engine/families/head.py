"""The MTP head: a small network that guesses the token after next.

With h_p the trunk's hidden state at position p after its final norm, and e the embedding of the
token that follows, one pass computes

    x_p = W [N_e(e_{p+1}); N_h(h_p)]        W: (H, 2H), embedding first
    z_p = N_out(block(x_p))                 predicts token p + 2

and z_p can be fed back as the hidden state of pair p + 1, to guess one token further. This is the
layout of DeepSeek-V3 (arXiv 2412.19437, section 2.2) as the Qwen family uses it.
"""

from collections.abc import Callable
from typing import Any

from mtplx_engine.backend import mx, nn

from mlx_lm.models.base import create_attention_mask
from mlx_lm.models.cache import KVCache

from mtplx_engine.families.base import Family, TrunkParts


class MTPModule(nn.Module):  # type: ignore[misc]  # mlx.nn is untyped
    """The head's own parameters, named as the checkpoints name them."""

    def __init__(self, args: Any, block: nn.Module) -> None:
        super().__init__()
        width, eps = args.hidden_size, args.rms_norm_eps
        self.pre_fc_norm_embedding = nn.RMSNorm(width, eps=eps)
        self.pre_fc_norm_hidden = nn.RMSNorm(width, eps=eps)
        self.fc = nn.Linear(2 * width, width, bias=False)
        self.layers = [block]
        self.norm = nn.RMSNorm(width, eps=eps)

    def __call__(
        self, hidden: mx.array, embedding: mx.array, cache: list[KVCache] | None = None
    ) -> mx.array:
        """(B, S, H) hidden states and (B, S, H) embeddings of the next tokens -> (B, S, H)."""
        pair = [self.pre_fc_norm_embedding(embedding), self.pre_fc_norm_hidden(hidden)]
        x = self.fc(mx.concatenate(pair, axis=-1))
        mask = create_attention_mask(x, cache[0] if cache else None)
        for index, layer in enumerate(self.layers):
            x = layer(x, mask, cache[index] if cache else None)
        normed: mx.array = self.norm(x)
        return normed


class Head:
    """A head attached beside a trunk: shares its embedding and output head, owns the rest.

    It is not a child of the trunk's module tree, so that the trunk's parameters, adapters and
    strict loading do not see it.

    Attributes:
        vocab: (V',) token ids that the head drafts over, or None for the whole vocabulary.
    """

    def __init__(
        self, family: Family, trunk: TrunkParts, module: MTPModule, vocab: mx.array | None
    ) -> None:
        self.family = family
        self.trunk = trunk
        self.module = module
        self.vocab = vocab
        self._unembed_draft = (
            trunk.unembed if vocab is None else unembed_rows(trunk.unembed_module, vocab)
        )

    def make_cache(self) -> list[KVCache]:
        """A fresh cache for one sequence; entry p is the pair (hidden p, token p + 1)."""
        return [KVCache() for _ in self.module.layers]

    def read(self, hidden: mx.array, tokens: mx.array, cache: list[KVCache]) -> mx.array:
        """Read S pairs into the cache: (B, S, H) hidden states, (B, S) next tokens -> (B, S, H).

        The output for a pair predicts the token after the pair's own.
        """
        return self.module(hidden, self.trunk.embed(tokens), cache)

    def draft_logits(self, hidden: mx.array) -> mx.array:
        """(..., H) -> (..., V') logits over `vocab`."""
        return self._unembed_draft(hidden)


def unembed_rows(module: nn.Module, rows: mx.array) -> Callable[[mx.array], mx.array]:
    """The part of an output head that computes the logits of the given tokens only.

    Args:
        module: A linear or embedding module, quantised or not, with one row per token.
        rows: (V',) token ids.
    """
    weight = mx.contiguous(module.weight[rows])
    if "scales" not in module:
        mx.eval(weight)
        return lambda hidden: hidden @ weight.T
    scales = module.scales[rows]
    biases = module.biases[rows] if module.get("biases") is not None else None
    mx.eval(weight, scales, biases)
    settings = {"group_size": module.group_size, "bits": module.bits, "mode": module.mode}
    return lambda hidden: mx.quantized_matmul(
        hidden, weight, scales, biases, transpose=True, **settings
    )
