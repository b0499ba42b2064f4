"""From a GGUF file of the Llama architecture to a folder that mlx-lm loads.

Packed weights stay as they are: MLX reads GGUF's 4-bit and 8-bit blocks as its own affine
quantisation with groups of 32. Only names, the tokenizer and the settings change their form.
Understands what the embedded default needs, a byte-level BPE tokenizer that splits digits, and
refuses everything else.
"""

import json
import re
from pathlib import Path
from typing import Any

from mtplx_engine.backend import mx

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from mtplx_engine.errors import ModelInvalid

_GROUP_SIZE = 32
_SPECIAL_TOKEN = 3

_TOP_LEVEL = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_IN_A_BLOCK = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}
_BLOCK_NAME = re.compile(r"blk\.(\d+)\.(\w+)")


def convert(gguf: Path, folder: Path, generation: dict[str, Any]) -> None:
    """Write `config.json`, weights, tokenizer and generation settings into `folder`.

    Args:
        gguf: The file to read.
        folder: An existing, empty folder.
        generation: Recommended sampling settings; the end token is added from the file.

    Raises:
        ModelInvalid: The file is damaged, or not of the kind described above.
        OSError: The folder cannot be written.
    """
    try:
        loaded: Any = mx.load(str(gguf), return_metadata=True)
    except (RuntimeError, ValueError) as error:
        raise ModelInvalid(f"{gguf.name} cannot be read as a GGUF file: {error}") from error
    tensors, metadata = loaded
    for key, wanted in (("general.architecture", "llama"), ("tokenizer.ggml.model", "gpt2")):
        if metadata.get(key) != wanted:
            raise ModelInvalid(f"{gguf.name}: {key} is {metadata.get(key)!r}, not {wanted!r}.")
    try:
        weights = _rename(tensors)
        config = _config(metadata, weights)
        tokenizer, tokenizer_config = _tokenizer(metadata)
    except KeyError as error:
        raise ModelInvalid(f"{gguf.name} lacks {error}.") from error
    try:
        mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    except RuntimeError as error:  # MLX says so when the disk is full
        raise OSError(f"model.safetensors: {error}") from error
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    _write_json(folder / "config.json", config)
    _write_json(folder / "tokenizer_config.json", tokenizer_config)
    _write_json(
        folder / "generation_config.json",
        {"bos_token_id": config["bos_token_id"], "eos_token_id": config["eos_token_id"]}
        | generation,
    )


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _rename(tensors: dict[str, mx.array]) -> dict[str, mx.array]:
    """The tensors under mlx-lm's names.

    Nothing is rounded: norms stay float32 beside float16 scales, and so mlx-lm computes in float32.
    """
    renamed = {}
    for name, tensor in tensors.items():
        stem, _, kind = name.rpartition(".")
        block = _BLOCK_NAME.fullmatch(stem)
        if block is not None:
            target = f"model.layers.{block[1]}.{_IN_A_BLOCK[block[2]]}"
        else:
            target = _TOP_LEVEL[stem]
        renamed[f"{target}.{kind}"] = tensor
    return renamed


def _config(metadata: dict[str, Any], weights: dict[str, mx.array]) -> dict[str, Any]:
    hidden = metadata["llama.embedding_length"].item()
    heads = metadata["llama.attention.head_count"].item()
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": metadata["llama.block_count"].item(),
        "intermediate_size": metadata["llama.feed_forward_length"].item(),
        "num_attention_heads": heads,
        "num_key_value_heads": metadata["llama.attention.head_count_kv"].item(),
        "head_dim": hidden // heads,
        "rms_norm_eps": round(metadata["llama.attention.layer_norm_rms_epsilon"].item(), 12),
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "max_position_embeddings": metadata["llama.context_length"].item(),
        "rope_theta": metadata["llama.rope.freq_base"].item(),
        # GGUF stores q and k with their rows permuted for rotation of neighbouring pairs.
        "rope_traditional": True,
        "tie_word_embeddings": "lm_head.weight" not in weights,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"].item(),
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"].item(),
        "hidden_act": "silu",
    }
    quantisation = _quantisation(weights)
    if quantisation:
        config["quantization"] = quantisation
    return config


def _quantisation(weights: dict[str, mx.array]) -> dict[str, Any]:
    """mlx-lm's description of the packed tensors: 4 bits, exceptions by name."""
    settings: dict[str, Any] = {}
    for name, scales in weights.items():
        path, _, kind = name.rpartition(".")
        if kind != "scales":
            continue
        bits = weights[f"{path}.weight"].shape[-1] * 32 // (scales.shape[-1] * _GROUP_SIZE)
        settings |= {"group_size": _GROUP_SIZE, "bits": 4}
        if bits != 4:
            settings[path] = {"group_size": _GROUP_SIZE, "bits": bits}
    return settings


def _tokenizer(metadata: dict[str, Any]) -> tuple[Tokenizer, dict[str, Any]]:
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    if metadata["tokenizer.ggml.pre"] != "smollm":
        raise ModelInvalid(f"tokenizer.ggml.pre {metadata['tokenizer.ggml.pre']!r} is unknown.")
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = metadata["tokenizer.ggml.token_type"].tolist()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _SPECIAL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])

    def token_of(role: str) -> str:
        index: int = metadata[f"tokenizer.ggml.{role}_token_id"].item()
        return tokens[index]

    return tokenizer, {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": token_of("bos"),
        "eos_token": token_of("eos"),
        "pad_token": token_of("padding"),
        "unk_token": token_of("unknown"),
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": metadata["llama.context_length"].item(),
        "chat_template": metadata["tokenizer.chat_template"],
    }
