"""Telling one model's weights from another's of the same name, without reading all of them."""

import hashlib
from pathlib import Path

from mtplx_engine.models.card import weight_files
from mtplx_engine.models.head_files import SIDECARS

_SAMPLES, _SAMPLE_BYTES = 16, 1 << 16


def fingerprint(folder: Path) -> str:
    """A digest of a model folder's configuration and of samples of its weights.

    Copying the folder does not change it; a head beside the weights does not count.

    Raises:
        ModelInvalid: The weights are not all there.
    """
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for path in weight_files(folder):
        if path.name in SIDECARS:
            continue
        size = path.stat().st_size
        digest.update(f"{path.name} {size}".encode())
        with path.open("rb") as file:
            for index in range(_SAMPLES):
                file.seek(max(size - _SAMPLE_BYTES, 0) * index // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:16]
