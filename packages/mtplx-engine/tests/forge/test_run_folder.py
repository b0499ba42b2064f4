"""What a run finds in its folder, and in the way of its file, that it did not put there."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mtplx_engine.backend import mx

import numpy as np
import pytest

from mtplx_engine.errors import ModelError
from mtplx_engine.forge.laws import LawFile
from mtplx_engine.forge.pack import replace_safetensors
from mtplx_engine.forge.plan import ForgeProgress, Plan, Recipe
from mtplx_engine.forge.run_folder import RunFolder
from mtplx_engine.forge.text import read_pieces
from mtplx_engine.forge.train import forge_head
from mtplx_engine.models.locate import Located
from mtplx_engine.models.trunk import load_trunk
from mtplx_engine.tiny import HIDDEN, write_tiny_model


def quietly(_: ForgeProgress) -> None: ...


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    recipe = Recipe(seconds=3600.0, most_steps=2, batch=4)
    return Plan(tmp_path / "run", tmp_path / "head", recipe, tokens=300, longest=64)


def test_what_is_no_head_is_not_overwritten(llama: Located, plan: Plan) -> None:
    weights = llama.folder / "model.safetensors"
    before = weights.read_bytes()
    with pytest.raises(ModelError, match="no MTP head"):
        forge_head(llama, replace(plan, out=weights), quietly)
    assert weights.read_bytes() == before


def test_a_shard_with_a_head_in_it_is_no_head(llama: Located, plan: Plan, tmp_path: Path) -> None:
    shard = tmp_path / "model-00002-of-00002.safetensors"
    weights = {"mtp.fc.weight": mx.zeros((2, 4)), "model.layers.3.mlp.weight": mx.zeros((2, 2))}
    mx.save_safetensors(str(shard), weights)
    with pytest.raises(ModelError, match="no MTP head"):
        forge_head(llama, replace(plan, out=shard), quietly)


def test_a_head_may_be_overwritten(llama: Located, plan: Plan) -> None:
    head = forge_head(llama, plan, quietly).path
    assert forge_head(llama, replace(plan, out=head), quietly).path == head


def test_another_model_of_the_same_name_is_refused(
    llama: Located, plan: Plan, tmp_path: Path
) -> None:
    forge_head(llama, plan, quietly)
    other = write_tiny_model(tmp_path / "other" / "tiny", "llama", seed=5, head=False)
    with pytest.raises(ModelError, match="weights"):
        forge_head(Located(other, llama.id, "a test"), plan, quietly)


def test_laws_follow_a_text_that_changed(llama: Located, plan: Plan) -> None:
    forge_head(llama, plan, quietly)
    folder = RunFolder(plan.run_dir)
    lines = folder.text.read_text().splitlines(keepends=True)
    folder.text.write_text("".join([*lines[:3], *lines[:2:-1]]))
    more = replace(plan, recipe=replace(plan.recipe, most_steps=3))
    forge_head(llama, more, quietly)
    pieces = read_pieces(folder.text)
    laws = LawFile(folder.laws, pieces, HIDDEN)
    model = load_trunk(llama.folder).model
    for index, piece in enumerate(pieces):
        top = np.array(mx.argmax(model(mx.array([piece.ids]))[0], axis=-1))
        assert laws.read(index)["top"].tolist() == top.tolist()


def test_one_run_at_a_time(llama: Located, plan: Plan) -> None:
    plan.run_dir.mkdir()
    with (
        RunFolder(plan.run_dir).alone(),
        pytest.raises(ModelError, match="Another run is at work"),
    ):
        forge_head(llama, plan, quietly)
    forge_head(llama, plan, quietly)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:30])


def write(text: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(text) and None


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("vocab.json", write('{"ids": [999999]}')),
        ("vocab.json", write('{"ids": ["x"]}')),
        ("vocab.json", write('{"ids": []}')),
        ("vocab.json", write("{")),
        ("settings.json", write("{")),
        ("checkpoint.safetensors", cut),
        ("curve.csv", write("")),
        ("curve.csv", write("step\nx\n")),
        ("text.jsonl", write("garbage\n")),
    ],
)
def test_damage_is_named(
    llama: Located, plan: Plan, name: str, damage: Callable[[Path], None]
) -> None:
    plan = replace(plan, draft_vocab=40)
    forge_head(llama, plan, quietly)
    damage(plan.run_dir / name)
    with pytest.raises(ModelError, match=name):
        forge_head(llama, plan, quietly)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere" / "head.safetensors"
    with pytest.raises(ModelError, match=r"head\.safetensors cannot be written"):
        replace_safetensors(missing, {"fc.weight": mx.zeros((2, 2))}, {})
