"""Tiny models with real MTP heads, written to disk in a second: for tests and demonstrations.

They have the architecture of their big relatives, random weights and a byte-level tokenizer. The
trunk is nearly memoryless and the head nearly copies it, so that drafts are accepted about as often
as those of a trained head, and every path of the decoder runs.
"""

import json
from pathlib import Path
from typing import Any, Literal

from mtplx_engine.backend import mx, nn

from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.models import llama, qwen3_5, qwen3_next
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from mtplx_engine.families.head import MTPModule
from mtplx_engine.families.registry import family_of

TinyFamily = Literal["qwen3_5", "qwen3_next", "llama"]

HIDDEN = 64
SPECIAL_TOKENS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>")
VOCABULARY = 256 + len(SPECIAL_TOKENS)

_CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_ATTENTION = {
    "hidden_size": HIDDEN,
    "intermediate_size": 2 * HIDDEN,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}
_RECURRENT = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
}
_EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "decoder_sparse_step": 1,
    "shared_expert_intermediate_size": 32,
    "moe_intermediate_size": 32,
    "mlp_only_layers": [],
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.25,
}
_ROPE = {"type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}


def tiny_config(family: TinyFamily, *, head_dim: int = 16) -> dict[str, Any]:
    """The `config.json` of a tiny model whose attention heads are so wide."""
    attention = _ATTENTION | {"head_dim": head_dim}
    match family:
        case "qwen3_5":
            text = {**attention, **_RECURRENT, "rope_parameters": _ROPE}
            text |= {"model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1}
            return {"model_type": "qwen3_5", "text_config": text}
        case "qwen3_next":
            return {"model_type": "qwen3_next", **attention, **_RECURRENT, **_EXPERTS}
        case "llama":
            return {"model_type": "llama", **attention, "rope_theta": 10000.0}


def write_tiny_model(
    folder: Path,
    family: TinyFamily = "qwen3_5",
    *,
    seed: int = 0,
    head: bool = True,
    head_dim: int = 16,
) -> Path:
    """Write a tiny model into a folder, which is made if it is not there.

    Args:
        folder: Where to.
        family: The architecture.
        seed: Of the random weights.
        head: Whether an MTP head lies among the weights.
        head_dim: Width of the attention heads; keys and values of 32, 64 and so on can be
            quantised.

    Returns:
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mx.random.seed(seed)
    config = tiny_config(family, head_dim=head_dim)
    architecture = {"qwen3_5": qwen3_5, "qwen3_next": qwen3_next, "llama": llama}[family]
    model = architecture.Model(architecture.ModelArgs.from_dict(config))
    _quieten(model)
    weights = dict(tree_flatten(model.parameters()))
    if head:
        weights |= {f"mtp.{name}": value for name, value in _head_weights(model, config).items()}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": 256 + SPECIAL_TOKENS.index("<|im_end|>")})
    )
    write_byte_tokenizer(folder)
    return folder


def _quieten(module: nn.Module) -> None:
    """Make each block add little to the residual stream, and the laws peaky."""
    scales = {"o_proj": 0.3, "out_proj": 0.3, "down_proj": 0.3, "lm_head": 4.0, "embed_tokens": 8.0}
    scaled = [
        (path, value * scale)
        for path, value in tree_flatten(module.parameters())
        for name, scale in scales.items()
        if f"{name}.weight" in path
    ]
    module.update(tree_unflatten(scaled))


def _head_weights(model: nn.Module, config: dict[str, Any]) -> dict[str, mx.array]:
    family = family_of(config)
    assert family is not None
    args = family.parts(model).args
    head = MTPModule(args, family.block(args))
    _quieten(head)
    passes_embedding = mx.concatenate([mx.eye(HIDDEN), mx.zeros((HIDDEN, HIDDEN))], axis=1)
    head.fc.weight = passes_embedding + 0.05 * mx.random.normal((HIDDEN, 2 * HIDDEN))
    return dict(tree_flatten(head.parameters()))


def write_byte_tokenizer(folder: Path) -> None:
    """Write a tokenizer with one token per byte, four special tokens and a chat template."""
    alphabet = _bytes_as_characters()
    tokenizer = Tokenizer(BPE({character: index for index, character in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in SPECIAL_TOKENS[:2]])
    tokenizer.add_tokens([AddedToken(t, special=False) for t in SPECIAL_TOKENS[2:]])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "clean_up_tokenization_spaces": False,
        "chat_template": _CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))


def _bytes_as_characters() -> list[str]:
    """GPT-2's printable stand-ins for the 256 bytes, in byte order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    stand_in = {byte: chr(byte) for byte in printable}
    stand_in |= {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [stand_in[byte] for byte in range(256)]
