"""Where the tensors of an MTP head lie in a model folder. Reads file headers, never weights."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtplx_engine.errors import ModelInvalid

SIDECARS = ("mtp.safetensors", "mtp/weights.safetensors", "model-mtp.safetensors")
_PREFIXES = ("mtp.", "language_model.mtp.", "model.mtp.", "model.language_model.mtp.")
_TRUNK = ("model.", "language_model.", "lm_head.", "embed_tokens.")
_MAX_HEADER_BYTES = 100_000_000  # the limit of the safetensors format


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """Shape and stored type of one tensor."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Header:
    """What a safetensors file says of itself."""

    tensors: dict[str, TensorHeader]
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class HeadFiles:
    """A head that was found.

    Attributes:
        source: For people, for example "sidecar mtp.safetensors".
        tensors: Name relative to the head -> (file, name in the file).
        shapes: Name relative to the head -> header.
        beside_raw_trunk: The tensors lie in the shards of a checkpoint that mlx-lm has not
            converted yet.
        norms: The convention of the norm weights, where the file states it.
    """

    source: str
    tensors: dict[str, tuple[Path, str]]
    shapes: dict[str, TensorHeader]
    beside_raw_trunk: bool
    norms: str | None


def read_header(path: Path) -> Header:
    """Read the JSON header of a safetensors file.

    Raises:
        ModelInvalid: The file is cut short or not a safetensors file.
    """
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > _MAX_HEADER_BYTES:
                raise ValueError("its header would be larger than the format allows")
            entries: dict[str, Any] = json.loads(file.read(length))
            size = file.seek(0, 2)
        metadata = entries.pop("__metadata__", None) or {}  # MLX writes null
        tensors = {
            name: TensorHeader(tuple(map(int, entry["shape"])), str(entry["dtype"]))
            for name, entry in entries.items()
        }
        end = max((int(entry["data_offsets"][1]) for entry in entries.values()), default=0)
        if 8 + length + end > size:
            raise ValueError("it is cut short")
        metadata = {str(key): str(value) for key, value in dict(metadata).items()}
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        struct.error,
    ) as error:
        raise ModelInvalid(f"{path} is not a readable safetensors file: {error}") from error
    return Header(tensors, metadata)


def find_head(folder: Path, sidecar: Path | None = None) -> HeadFiles | None:
    """Find a head: the given sidecar, one in the folder, or tensors among the shards.

    Args:
        folder: A model folder.
        sidecar: A file outside the folder that holds the head.

    Raises:
        ModelInvalid: A file that should hold it cannot be read, or holds no head.
    """
    candidates = [sidecar] if sidecar else [folder / name for name in SIDECARS]
    for path in candidates:
        if path.is_file():
            found = _in_files([path], f"sidecar {path.name}", bare_names=True)
            if found is None:
                raise ModelInvalid(f"{path} holds no MTP head: none of its tensors is named fc.*")
            return found
    shards = sorted(folder.glob("model*.safetensors"))
    return _in_files(shards, "the model's own shards", bare_names=False)


def is_head(path: Path) -> bool:
    """Whether a file holds a head and nothing of a trunk.

    Raises:
        ModelInvalid: It is not a readable safetensors file.
    """
    found = _in_files([path], path.name, bare_names=True)
    return found is not None and not any(name.startswith(_TRUNK) for name in found.tensors)


def _in_files(paths: list[Path], source: str, *, bare_names: bool) -> HeadFiles | None:
    tensors: dict[str, tuple[Path, str]] = {}
    shapes: dict[str, TensorHeader] = {}
    raw = False
    norms = None
    for path in paths:
        header = read_header(path)
        norms = header.metadata.get("mtp_norms", norms)
        for name, tensor in header.tensors.items():
            raw = raw or _is_raw(name, tensor)
            relative = _relative_name(name, bare_names=bare_names)
            if relative is not None:
                tensors[relative] = (path, name)
                shapes[relative] = tensor
    if not any(name.startswith("fc.") for name in tensors):
        return None
    return HeadFiles(source, tensors, shapes, raw, norms)


def _relative_name(name: str, *, bare_names: bool) -> str | None:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name if bare_names else None


def _is_raw(name: str, tensor: TensorHeader) -> bool:
    """Whether this trunk tensor is laid out as in the original checkpoint, not as mlx-lm does.

    mlx-lm stores depthwise kernels as (C, K, 1), the original as (C, 1, K); it stacks experts.
    """
    if name.endswith("conv1d.weight"):
        return tensor.shape[-1] != 1
    return name.startswith("model.layers.") and ".mlp.experts.0." in name
