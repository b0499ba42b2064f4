"""Whole runs on tiny models: what is learnt, what is written, and going on after a stop."""

import json
from dataclasses import replace
from pathlib import Path

from mtplx_engine.backend import mx

import numpy as np
import pytest
from mlx.utils import tree_flatten

from mtplx_engine.errors import ModelError
from mtplx_engine.forge.curve import read_curve
from mtplx_engine.forge.plan import ForgeProgress, OnForgeProgress, Plan, Recipe
from mtplx_engine.forge.run_folder import RunFolder
from mtplx_engine.forge.text import read_pieces
from mtplx_engine.forge.train import forge_head
from mtplx_engine.models.attach import attach_head
from mtplx_engine.models.head_files import find_head
from mtplx_engine.models.load import load
from mtplx_engine.models.locate import Located
from mtplx_engine.models.trunk import load_trunk
from mtplx_engine.tiny import write_tiny_model

PROMPTS = "\n".join(f"Tell me about {thing}." for thing in ("tea", "owls", "rain", "Peru", "glue"))
SAMPLE = "The river rises in the hills and runs past mills and meadows down to the sea. " * 12


class Stopped(Exception):
    """Stands for a run that is killed."""


def steps(number: int, *, learning_rate: float = 2e-3) -> Recipe:
    return Recipe(
        seconds=3600.0, most_steps=number, batch=4, learning_rate=learning_rate, warm_up=2
    )


def quietly(_: ForgeProgress) -> None: ...


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(PROMPTS)
    return Plan(
        run_dir=tmp_path / "run",
        out=tmp_path / "head",
        recipe=steps(30),
        tokens=400,
        prompts=prompts,
        longest=96,
    )


def parameters(located: Located, head: Path | None) -> dict[str, np.ndarray]:
    """The head's weights, as a server would load them."""
    located = replace(located, head=head)
    model = load(located, mtp="on", depth=None, on_progress=lambda _: None)
    assert model.head is not None
    return {name: np.array(v) for name, v in tree_flatten(model.head.module.parameters())}


def test_a_run_makes_a_head_that_drafts(headless: Located, plan: Plan) -> None:
    forged = forge_head(headless, plan, quietly)
    assert forged.best.overlap[0] > forged.first.overlap[0] + 0.1
    curve = read_curve(plan.run_dir / "curve.csv")
    assert curve[0].step == 0
    assert curve[-1].step == forged.steps == 30
    head = forged.path
    assert head == plan.out / "mtp.safetensors"
    trunk = load_trunk(headless.folder)
    attached = attach_head(trunk, headless.folder, head, "auto")
    assert attached.head is not None, attached.reason


def test_the_file_loads_back_as_the_head_that_was_trained(headless: Located, plan: Plan) -> None:
    """Norms included, whichever convention the family's own checkpoints follow."""
    forged = forge_head(headless, plan, quietly)
    stored: dict[str, mx.array] = dict(mx.load(str(forged.path)))  # type: ignore[arg-type]
    loaded = parameters(headless, forged.path)
    assert loaded.keys() == stored.keys() - {"draft_vocab"}
    for name, value in loaded.items():
        np.testing.assert_allclose(value, np.array(stored[name]), rtol=1e-3, atol=1e-3)
    checkpoint = dict(mx.load(str(plan.run_dir / "checkpoint.safetensors")))  # type: ignore[arg-type]
    best = read_curve(plan.run_dir / "curve.csv")[-1]
    if best.measured.overlap[0] == pytest.approx(forged.best.overlap[0]):
        for name, value in loaded.items():
            trained = np.array(checkpoint[f"head.{name}"])
            np.testing.assert_allclose(value, trained, rtol=2e-3, atol=2e-3)
    files = find_head(headless.folder, forged.path)
    assert files is not None
    assert files.norms == "absolute"
    assert all(header.dtype == "F16" for name, header in files.shapes.items())


def stop_at(step: int) -> OnForgeProgress:
    def on_progress(progress: ForgeProgress) -> None:
        if progress.detail.startswith(f"step {step},"):
            raise Stopped

    return on_progress


def test_a_killed_run_goes_on_with_its_checkpoint(llama: Located, plan: Plan) -> None:
    with pytest.raises(Stopped):
        forge_head(llama, plan, stop_at(20))
    text = (plan.run_dir / "text.jsonl").read_bytes()
    laws = (plan.run_dir / "laws.bin").read_bytes()
    before = (plan.run_dir / "curve.csv").read_text()
    assert read_curve(plan.run_dir / "curve.csv")[-1].step == 18  # of 30, measured ten times
    done: list[str] = []
    forged = forge_head(llama, plan, lambda progress: done.append(progress.detail))
    assert next(line for line in done if line.startswith("step")).startswith("step 19,")
    assert forged.steps == 30
    assert (plan.run_dir / "text.jsonl").read_bytes() == text
    assert (plan.run_dir / "laws.bin").read_bytes() == laws
    assert (plan.run_dir / "curve.csv").read_text().startswith(before)


def test_a_stop_changes_nothing_but_the_time(llama: Located, plan: Plan, tmp_path: Path) -> None:
    """The same steps on the same data: weights and optimizer come back whole."""
    with pytest.raises(Stopped):
        forge_head(llama, plan, stop_at(20))
    stopped = forge_head(llama, plan, quietly)
    whole = forge_head(llama, replace(plan, run_dir=tmp_path / "other"), quietly)
    assert stopped.best.overlap == pytest.approx(whole.best.overlap, abs=2e-3)


def test_a_finished_run_is_done_at_once_and_may_be_prolonged(llama: Located, plan: Plan) -> None:
    forge_head(llama, plan, quietly)
    done: list[str] = []
    again = forge_head(llama, plan, lambda progress: done.append(progress.detail))
    assert again.steps == 30
    assert not [line for line in done if line.startswith("step")]
    longer = forge_head(llama, replace(plan, recipe=steps(40)), quietly)
    assert longer.steps == 40


def test_more_text_is_added_to_what_is_there(llama: Located, plan: Plan) -> None:
    forge_head(llama, replace(plan, recipe=steps(2)), quietly)
    before = read_pieces(plan.run_dir / "text.jsonl")
    forge_head(llama, replace(plan, tokens=2000, recipe=steps(4)), quietly)
    after = read_pieces(plan.run_dir / "text.jsonl")
    assert after[: len(before)] == before
    assert sum(len(piece.ids) - piece.start for piece in after) >= 2000


def test_text_files_alone_will_do(llama: Located, plan: Plan, tmp_path: Path) -> None:
    text = tmp_path / "book.txt"
    text.write_text(SAMPLE)
    plan = replace(plan, tokens=0, texts=(text,), recipe=steps(2))
    forge_head(llama, plan, quietly)
    pieces = read_pieces(plan.run_dir / "text.jsonl")
    assert sum(len(piece.ids) for piece in pieces) == len(SAMPLE)
    assert all(piece.start == 0 for piece in pieces)
    forge_head(llama, plan, quietly)
    assert read_pieces(plan.run_dir / "text.jsonl") == pieces


@pytest.mark.parametrize(("asked", "got"), [(40, 40), (0, None), (100_000, None)])
def test_the_draft_vocabulary_is_as_asked(
    llama: Located, plan: Plan, asked: int, got: int | None
) -> None:
    forged = forge_head(llama, replace(plan, draft_vocab=asked, recipe=steps(2)), quietly)
    stored: dict[str, mx.array] = dict(mx.load(str(forged.path)))  # type: ignore[arg-type]
    assert ("draft_vocab" in stored) == (got is not None)
    if got is not None:
        ids = np.array(stored["draft_vocab"]).tolist()
        assert len(set(ids)) == got
        assert ids == sorted(ids)


@pytest.fixture
def headed(llama: Located, plan: Plan, tmp_path: Path) -> Located:
    """A model that has a head, over 40 tokens."""
    first = replace(plan, draft_vocab=40, run_dir=tmp_path / "first", out=tmp_path / "first")
    return replace(llama, head=forge_head(llama, first, quietly).path)


def test_it_starts_from_the_head_that_is_there(headed: Located, plan: Plan, tmp_path: Path) -> None:
    recipe = steps(1, learning_rate=0.0)
    kept = forge_head(headed, replace(plan, recipe=recipe), quietly)
    elsewhere = tmp_path / "fresh"
    fresh_plan = replace(plan, recipe=recipe, fresh=True, run_dir=elsewhere, out=elsewhere)
    forge_head(headed, fresh_plan, quietly)
    again_plan = replace(fresh_plan, draft_vocab=40, run_dir=tmp_path / "again")
    again = forge_head(headed, again_plan, quietly)
    before = read_curve(tmp_path / "first" / "curve.csv")
    best = max(point.measured.overlap[0] for point in before)
    assert kept.first.overlap[0] == pytest.approx(best, abs=2e-3)
    assert again.first.overlap[0] == pytest.approx(before[0].measured.overlap[0], abs=2e-3)
    assert len(RunFolder(plan.run_dir).read_vocab(10**6) or []) == 40
    assert RunFolder(fresh_plan.run_dir).read_vocab(10**6) is None  # 8192 are more than it has
    loaded = parameters(headed, kept.path)
    for name, value in parameters(headed, headed.head).items():
        np.testing.assert_allclose(loaded[name], value, rtol=1e-3, atol=1e-3)


def test_a_folder_of_another_run_is_refused(llama: Located, plan: Plan) -> None:
    plan = replace(plan, recipe=steps(1))
    forge_head(llama, plan, quietly)
    with pytest.raises(ModelError, match="holds a run with longest 96, not 48"):
        forge_head(llama, replace(plan, longest=48), quietly)
    with pytest.raises(ModelError, match="holds a run already"):
        forge_head(llama, replace(plan, resume=False), quietly)


def test_what_cannot_be_used_is_named(llama: Located, plan: Plan, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(" \n")
    wrong = {
        "empty": replace(plan, texts=(file,)),
        "holds no prompts|is empty": replace(plan, prompts=file),
        "cannot be read": replace(plan, texts=(tmp_path / "none.txt",)),
        r"file.*mtp.safetensors cannot be written": replace(plan, out=file),
        "cannot be used": replace(plan, run_dir=file / "run"),
        "too little text": replace(plan, tokens=0),
        "No prompt leaves room": replace(plan, longest=32),
    }
    for number, (message, plan_of) in enumerate(wrong.items()):
        if plan_of.run_dir == plan.run_dir:
            plan_of = replace(plan_of, run_dir=tmp_path / f"run-{number}")
        with pytest.raises(ModelError, match=message):
            forge_head(llama, plan_of, quietly)


def test_a_model_type_without_a_family_is_refused(plan: Plan, tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "other", "llama", head=False)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "mistral3"}))
    config = json.loads((folder / "config.json").read_text())
    with pytest.raises(ModelError):
        forge_head(Located(folder, "other", "a test"), plan, quietly)
