"""What a model folder's JSON files say. No weights, no MLX."""

import json
from pathlib import Path
from typing import Any

from mtplx_engine.errors import InvalidRequest, ModelInvalid
from mtplx_engine.request import Sampling

_FALLBACK_CONTEXT = 4096


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelInvalid: The file is missing, unreadable or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelInvalid(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ModelInvalid(f"{path} does not hold a JSON object.")
    return content


def context_length(config: dict[str, Any]) -> int:
    """Tokens of prompt and answer together, from `config.json`."""
    text = config.get("text_config") or config
    return int(text.get("max_position_embeddings") or _FALLBACK_CONTEXT)


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
    values = {
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
    }
    values |= {name: advice[name] for name in values if advice.get(name) is not None}
    try:
        return Sampling(
            temperature=float(values["temperature"]),
            top_k=int(values["top_k"]),
            top_p=float(values["top_p"]),
            min_p=float(values["min_p"]),
        )
    except (InvalidRequest, TypeError, ValueError) as error:
        raise ModelInvalid(f"{path}: {error}") from error
