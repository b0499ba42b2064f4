"""Tiny trunks without a head, and heads to train on them."""

import pytest

from mtplx_engine.forge.start import Start, starting_head
from mtplx_engine.forge.text import Piece
from mtplx_engine.models.locate import Located
from mtplx_engine.models.trunk import load_trunk
from mtplx_engine.tiny import TinyFamily, write_tiny_model


@pytest.fixture(scope="session")
def headless(tmp_path_factory: pytest.TempPathFactory, family: TinyFamily) -> Located:
    """A tiny model of each family that has no head."""
    folder = write_tiny_model(tmp_path_factory.mktemp("headless") / family, family, head=False)
    return Located(folder, folder.name, "a test")


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Located:
    """One tiny model that has no head, for what does not differ between families."""
    folder = write_tiny_model(tmp_path_factory.mktemp("headless") / "tiny", "llama", head=False)
    return Located(folder, folder.name, "a test")


@pytest.fixture
def start(headless: Located) -> Start:
    return starting_head(load_trunk(headless.folder), headless, fresh=True, seed=0)


@pytest.fixture
def pieces() -> list[Piece]:
    """Sequences of several lengths, one with a prompt."""
    text = b"The quick brown fox jumps over the lazy dog and runs away."
    return [Piece(tuple(text[at : at + 20 + 3 * at]), start=5 * at) for at in range(4)]
