"""What a model folder's JSON files say. No weights, no MLX."""

import json
from pathlib import Path
from typing import Any

from mtplx_engine.errors import InvalidRequest, ModelInvalid
from mtplx_engine.request import Sampling

_FALLBACK_CONTEXT = 4096
# Tokenizers without a limit of their own store a huge number as `model_max_length`.
_SANE_LENGTH = 10_000_000


def one_line(error: BaseException) -> str:
    """What an exception says, on one line and never nothing."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else repr(error)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelInvalid: The file is missing, unreadable or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelInvalid(f"{path} cannot be read: {one_line(error)}") from error
    if not isinstance(content, dict):
        raise ModelInvalid(f"{path} does not hold a JSON object.")
    return content


def context_length(folder: Path, config: dict[str, Any]) -> int:
    """Tokens of prompt and answer together: the model's limit, or the tokenizer's if smaller.

    Raises:
        ModelInvalid: `tokenizer_config.json` cannot be read.
    """
    text = config.get("text_config") or config
    length = int(text.get("max_position_embeddings") or _FALLBACK_CONTEXT)
    tokenizer = folder / "tokenizer_config.json"
    limit = read_json(tokenizer).get("model_max_length") if tokenizer.is_file() else None
    if isinstance(limit, int) and 0 < limit < _SANE_LENGTH:
        return min(length, limit)
    return length


def describe_quantization(config: dict[str, Any]) -> str:
    """How the weights are packed, for people: "4-bit, group 64", or "none"."""
    settings = config.get("quantization") or {}
    if "bits" not in settings:
        method = (config.get("quantization_config") or {}).get("quant_method")
        return str(method) if method else "none"
    bits = {s["bits"] for s in settings.values() if isinstance(s, dict) and "bits" in s}
    exceptions = sorted(bits - {settings["bits"]})
    text = f"{settings['bits']}-bit, group {settings['group_size']}"
    if exceptions:
        text += f"; some tensors {' and '.join(f'{b}-bit' for b in exceptions)}"
    return text


def sampling_defaults(folder: Path) -> Sampling:
    """The sampling that the model's makers recommend in `generation_config.json`.

    What the file leaves open is neutral: temperature 1 and no filter. A file that asks for
    greedy decoding (`do_sample` false) does not bind a chat server and is read for its other
    values only.

    Raises:
        ModelInvalid: The file holds a value that is out of range.
    """
    path = folder / "generation_config.json"
    advice = read_json(path) if path.is_file() else {}
    values: dict[str, Any] = {
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
    }
    values |= {name: advice[name] for name in values if advice.get(name) is not None}
    try:
        return Sampling(
            temperature=float(values["temperature"]),
            top_k=int(values["top_k"]),
            top_p=float(values["top_p"]),
            min_p=float(values["min_p"]),
            repetition_penalty=float(values["repetition_penalty"]),
            presence_penalty=0.0,
            frequency_penalty=0.0,
            top_n_sigma=0.0,
            xtc_probability=0.0,
            xtc_threshold=1.0,
        )
    except (InvalidRequest, TypeError, ValueError, OverflowError) as error:
        raise ModelInvalid(f"{path}: {error}") from error
