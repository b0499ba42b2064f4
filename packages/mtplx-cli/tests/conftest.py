"""The real executable, in a process of its own, with a tiny model and no network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from mtplx_engine.backend import mx

import pytest

from mtplx_engine.tiny import write_tiny_model

MTPLX = Path(sys.executable).parent / "mtplx"
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny", "llama")


@pytest.fixture(scope="session")
def wide_folder(tmp_path_factory):
    """A model whose keys and values can be quantised."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "wide", "llama", head_dim=64)


@pytest.fixture
def headless_folder(tiny_folder, tmp_path):
    """The tiny model without its MTP head."""
    folder = tmp_path / "headless"
    shutil.copytree(tiny_folder, folder)
    weights = mx.load(str(tiny_folder / "model.safetensors"))
    trunk = {name: value for name, value in weights.items() if "mtp." not in name}
    assert trunk.keys() < weights.keys()
    mx.save_safetensors(str(folder / "model.safetensors"), trunk, metadata={"format": "mlx"})
    return folder


@pytest.fixture
def environment(tmp_path):
    """An empty home and no network."""
    return os.environ | {
        "HOME": str(tmp_path),
        "MTPLX_HOME": str(tmp_path / "mtplx"),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_ENDPOINT": NOWHERE,
        "MTPLX_INDEX_URL": f"{NOWHERE}/simple",
        "COLUMNS": "200",
    }


@pytest.fixture(scope="session")
def mtplx_path():
    return MTPLX


@pytest.fixture
def mtplx(environment):
    """Run a command line to its end."""

    def mtplx(*arguments, stdin=None):
        return subprocess.run(
            [MTPLX, *map(str, arguments)],
            input=stdin,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return mtplx


@pytest.fixture
def start(environment):
    """Start a command line; it is killed at the end of the test if it still runs."""
    children = []

    def start(*arguments, **more):
        child = subprocess.Popen(
            [MTPLX, *map(str, arguments)],
            env=environment | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()
