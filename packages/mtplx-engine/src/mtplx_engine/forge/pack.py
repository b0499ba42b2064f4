"""The head file: float16 safetensors under the names that loading accepts."""

import tempfile
from pathlib import Path

from mtplx_engine.backend import mx

from mlx.utils import tree_flatten

from mtplx_engine.errors import ModelError
from mtplx_engine.families.head import Head
from mtplx_engine.forge.replacing import replacing
from mtplx_engine.models.head_files import is_head

DEFAULT_NAME = "mtp.safetensors"


def head_path(out: Path) -> Path:
    """The file that `out` means: itself, or `mtp.safetensors` in the folder that it is.

    Raises:
        ModelError: It cannot be written there, or something else lies there.
    """
    path = out / DEFAULT_NAME if out.is_dir() or out.suffix != ".safetensors" else out
    if path.is_file() and not is_head(path):
        raise ModelError(f"{path} would be overwritten and is no MTP head; choose another name.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as error:
        raise ModelError(f"{path} cannot be written: {error.strerror}.") from error


def write_head(head: Head, path: Path) -> None:
    """Write a head; the file is either the old one or the whole new one, whatever happens.

    Norm weights are written as MLX uses them, and the file says so: judging them by their size, as
    is done for files that say nothing, can err for a head that was trained here.
    """
    weights = {name: value.astype(mx.float16) for name, value in flat_parameters(head).items()}
    if head.vocab is not None:
        weights["draft_vocab"] = head.vocab.astype(mx.int32)
    replace_safetensors(path, weights, {"format": "mlx", "mtp_norms": "absolute"})


def flat_parameters(head: Head) -> dict[str, mx.array]:
    """The head's own parameters by their dotted names."""
    return dict(tree_flatten(head.module.parameters()))


def replace_safetensors(path: Path, weights: dict[str, mx.array], metadata: dict[str, str]) -> None:
    """Write a safetensors file, which is either the old one or the whole new one."""
    with replacing(path) as staging:
        mx.save_safetensors(str(staging), weights, metadata=metadata)
