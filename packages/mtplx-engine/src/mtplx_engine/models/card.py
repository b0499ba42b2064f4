"""What can be known of a model without loading its weights."""

import ast
import importlib.util
from dataclasses import dataclass
from math import prod
from pathlib import Path

from mtplx_engine.errors import EngineError, ModelInvalid
from mtplx_engine.families.registry import can_draft
from mtplx_engine.models.config import (
    context_length,
    describe_quantization,
    one_line,
    read_json,
)
from mtplx_engine.models.footprint import Footprint, conversation_footprint, count_parameters
from mtplx_engine.models.head_files import HeadFiles, TensorHeader, find_head, read_header

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model folder, described.

    Attributes:
        folder: Where it is.
        model_type: What its makers call the architecture.
        context_length: Tokens of prompt and answer together.
        vocabulary: Number of token ids.
        layers: Decoder layers, the head's not included.
        hidden_size: Width of the residual stream.
        parameters: Logical parameters, the head's not included.
        quantization: For people, for example "4-bit, group 64".
        weight_bytes: Size of the weight files.
        footprint: What a conversation costs on top.
        head: The MTP head, for people; None when there is none.
        servable: Whether it can be served at all.
        drafts: Whether it can be served with MTP.
        verdict: What to expect, in one sentence.
    """

    folder: Path
    model_type: str
    context_length: int
    vocabulary: int
    layers: int
    hidden_size: int
    parameters: int
    quantization: str
    weight_bytes: int
    footprint: Footprint
    head: str | None
    servable: bool
    drafts: bool
    verdict: str


def read_card(folder: Path, head: Path | None = None) -> ModelCard:
    """Describe the model in a folder.

    Args:
        folder: Holds `config.json` and `model*.safetensors`.
        head: An MTP head outside the folder.

    Raises:
        ModelInvalid: A file is missing or damaged; the message names it.
    """
    try:
        return _read_card(folder, head)
    except EngineError:
        raise
    except Exception as error:  # settings of the wrong kind surface anywhere below
        raise ModelInvalid(f"{folder} cannot be described: {one_line(error)}") from error


def _read_card(folder: Path, head: Path | None) -> ModelCard:
    config = read_json(folder / "config.json")
    text = config.get("text_config") or config
    model_type = str(config.get("model_type", "unknown"))
    files = weight_files(folder)
    tensors = _trunk_tensors(files)
    head_files = find_head(folder, head)
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise ModelInvalid(f"{folder} holds no tokenizer: none of {', '.join(_TOKENIZERS)}.")
    servable = _mlx_lm_has(model_type)
    drafts = servable and head_files is not None and can_draft(model_type)
    return ModelCard(
        folder=folder,
        model_type=model_type,
        context_length=context_length(folder, config),
        vocabulary=int(text.get("vocab_size") or 0),
        layers=int(text.get("num_hidden_layers") or 0),
        hidden_size=int(text.get("hidden_size") or 0),
        parameters=count_parameters(tensors, config.get("quantization") or {}),
        quantization=describe_quantization(config),
        weight_bytes=sum(path.stat().st_size for path in files),
        footprint=conversation_footprint(text, tensors),
        head=_describe_head(head_files) if head_files else None,
        servable=servable,
        drafts=drafts,
        verdict=_verdict(model_type, servable=servable, head=head_files, drafts=drafts),
    )


def weight_files(folder: Path) -> list[Path]:
    """The files that mlx-lm loads."""
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise ModelInvalid(f"{folder} holds no model*.safetensors.")
    index = folder / "model.safetensors.index.json"
    named = set(read_json(index).get("weight_map", {}).values()) if index.is_file() else set()
    missing = sorted(name for name in named if not (folder / name).is_file())
    if missing:
        raise ModelInvalid(f"{index} names {missing[0]}, which is not in the folder.")
    return files


def _trunk_tensors(files: list[Path]) -> dict[str, TensorHeader]:
    tensors: dict[str, TensorHeader] = {}
    for path in files:
        tensors |= read_header(path).tensors
    return {name: tensor for name, tensor in tensors.items() if "mtp." not in name}


def _describe_head(files: HeadFiles) -> str:
    parameters = sum(prod(tensor.shape) for tensor in files.shapes.values())
    return f"{files.source}, {len(files.shapes)} tensors, {parameters / 1e6:.1f} M values"


def _mlx_lm_has(model_type: str) -> bool:
    """Whether mlx-lm has a module for this type. Reads its files: importing it takes seconds."""
    spec = importlib.util.find_spec("mlx_lm")
    if spec is None or spec.origin is None:
        return False
    package = Path(spec.origin).parent
    renamed = _renamed_types(package / "utils.py").get(model_type, model_type)
    return (package / "models" / f"{renamed}.py").is_file()


def _renamed_types(source: Path) -> dict[str, str]:
    """Types that share another type's module."""
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODEL_REMAPPING":
            renamed: dict[str, str] = ast.literal_eval(node.value)
            return renamed
    return {}


def _verdict(model_type: str, *, servable: bool, head: HeadFiles | None, drafts: bool) -> str:
    if not servable:
        return f"cannot be served: mlx-lm has no model type {model_type!r}"
    if head is None:
        return "can be served; without drafting, because the model has no MTP head"
    if not drafts:
        return f"can be served; without drafting, because heads of {model_type!r} are not supported"
    return "can be served with MTP; the head is measured when the model is loaded"
