"""The law file: what it says of a position, and that it can be stopped anywhere."""

from pathlib import Path

from mtplx_engine.backend import mx

import numpy as np
import pytest

from mtplx_engine.families.head import Head
from mtplx_engine.forge.batches import read_batch
from mtplx_engine.forge.distil import distillation_loss
from mtplx_engine.forge.evaluate import measure
from mtplx_engine.forge.laws import LawFile
from mtplx_engine.forge.start import Start
from mtplx_engine.forge.text import Piece
from mtplx_engine.forge.unroll import unroll


@pytest.fixture(params=["all tokens", "some tokens"])
def head(start: Start, request: pytest.FixtureRequest) -> Head:
    return start.over(None if request.param == "all tokens" else list(range(32, 120)))


@pytest.fixture
def laws(head: Head, pieces: list[Piece], tmp_path: Path) -> LawFile:
    laws = LawFile(tmp_path / "laws.bin", pieces, head.trunk.args.hidden_size)
    laws.complete(head, lambda done, total: None)
    return laws


def trunk_laws(head: Head, piece: Piece) -> np.ndarray:
    """(S, V) the trunk's law at each position, computed directly."""
    hidden = head.trunk.body(mx.array([piece.ids]), None)[0]
    return np.array(mx.softmax(head.trunk.unembed(hidden).astype(mx.float32), axis=-1))


def drafted(head: Head) -> list[int]:
    vocabulary = head.trunk.unembed(mx.zeros((1, head.trunk.args.hidden_size))).shape[-1]
    return list(range(vocabulary)) if head.vocab is None else np.array(head.vocab).tolist()


def head_laws(head: Head, piece: Piece, depth: int) -> np.ndarray:
    """(S - depth, V') the head's law at a depth, computed directly."""
    tokens = mx.array([piece.ids])
    hidden = head.trunk.body(tokens, None).astype(mx.float32)
    logits = head.draft_logits(unroll(head, hidden, tokens, depth)[-1][0])
    return np.array(mx.softmax(logits.astype(mx.float32), axis=-1))


def test_a_record_holds_mass_and_choice(head: Head, laws: LawFile, pieces: list[Piece]) -> None:
    for index, piece in enumerate(pieces):
        record, law = laws.read(index), trunk_laws(head, piece)
        np.testing.assert_array_equal(record["top"], law.argmax(axis=-1))
        mass = law[:, drafted(head)].sum(axis=-1)
        np.testing.assert_allclose(record["mass"], mass, rtol=1e-3)


def test_the_loss_is_the_cross_entropy(head: Head, laws: LawFile, pieces: list[Piece]) -> None:
    """The stored vector stands for the whole law: both ways of computing give one number."""
    expected = 0.0
    for depth, weight in ((1, 1.0), (2, 0.4)):
        entropies = []
        for piece in pieces:
            first = max(piece.start - 1, depth)
            p = trunk_laws(head, piece)[first:][:, drafted(head)]
            q = head_laws(head, piece, depth)[first - depth :]
            entropies.append(-(p * np.log(q)).sum(axis=-1))
        expected += weight * np.concatenate(entropies).mean()
    batch = read_batch(laws, range(len(pieces)))
    loss = float(distillation_loss(head, batch, 2).item())
    assert loss == pytest.approx(expected, rel=2e-3)


def test_overlap_is_what_rejection_accepts(head: Head, laws: LawFile, pieces: list[Piece]) -> None:
    measured = measure(head, laws, range(len(pieces)))
    for depth in (1, 2, 3, 4):
        overlaps, hits = [], []
        for piece in pieces:
            first = max(piece.start - 1, depth)
            p, q = trunk_laws(head, piece)[first:], head_laws(head, piece, depth)[first - depth :]
            overlaps.append(np.minimum(p[:, drafted(head)], q).sum(axis=-1))
            choices = np.array(drafted(head))[q.argmax(axis=-1)]
            hits.append(choices == p.argmax(axis=-1))
        overlap = np.concatenate(overlaps).mean()
        assert measured.overlap[depth - 1] == pytest.approx(overlap, rel=2e-3)
        assert measured.agreement[depth - 1] == pytest.approx(np.concatenate(hits).mean())


@pytest.mark.parametrize("lost", [1, 700, 10_000])
def test_a_file_cut_anywhere_is_completed(
    head: Head, laws: LawFile, pieces: list[Piece], tmp_path: Path, lost: int
) -> None:
    path = tmp_path / "laws.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[:-lost])
    again: list[int] = []
    laws.complete(head, lambda done, total: again.append(done))
    assert path.read_bytes() == whole
    assert 0 < len(again) <= len(pieces)
    laws.complete(head, lambda done, total: pytest.fail("it was complete"))
