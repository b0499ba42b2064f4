"""The whole run: text, the trunk's laws, training, the head file. Goes on where it was stopped."""

import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from mtplx_engine.backend import read_ints

from mtplx_engine.errors import ModelError
from mtplx_engine.families.head import Head
from mtplx_engine.forge.curve import read_curve, write_curve
from mtplx_engine.forge.draft_vocab import coverage, frequent_tokens
from mtplx_engine.forge.evaluate import measure
from mtplx_engine.forge.fingerprint import fingerprint
from mtplx_engine.forge.laws import LawFile
from mtplx_engine.forge.pack import head_path, write_head
from mtplx_engine.forge.plan import Forged, ForgeProgress, Measured, OnForgeProgress, Plan, Point
from mtplx_engine.forge.prompts import default_prompts, read_prompts
from mtplx_engine.forge.replacing import replacing
from mtplx_engine.forge.run_folder import RunFolder
from mtplx_engine.forge.start import Start, starting_head
from mtplx_engine.forge.text import Piece, held_out, read_pieces
from mtplx_engine.forge.trainer import Progress, Trainer
from mtplx_engine.forge.writing import add_texts, write_answers
from mtplx_engine.models.locate import Located
from mtplx_engine.models.trunk import Trunk, load_trunk

HELD_OUT = 0.05
_DEFAULT_VOCAB = 8192
# Measurements in a whole run; each costs about as much as a few steps.
_MEASUREMENTS = 10


def forge_head(located: Located, plan: Plan, on_progress: OnForgeProgress) -> Forged:
    """Train a head for a model and write it.

    Everything runs on the calling thread. A killed run goes on with its last checkpoint when it is
    started again with the same run folder.

    Raises:
        ModelError: The model, a file or a folder cannot be used; the message says why.
    """
    try:
        out = head_path(plan.out)
        return _Run(located, plan, out, on_progress).finish()
    except OSError as error:
        raise ModelError(f"{error.filename or plan.run_dir}: {error.strerror}.") from error


class _Run:
    """One run, from loading to the file."""

    def __init__(
        self, located: Located, plan: Plan, out: Path, on_progress: OnForgeProgress
    ) -> None:
        self._plan = plan
        self._out = out
        self._folder = RunFolder(plan.run_dir)
        self._report = on_progress
        self._located = located

    def finish(self) -> Forged:
        plan, folder = self._plan, self._folder
        self._report(ForgeProgress("load", f"reading weights of {self._located.id}"))
        trunk = load_trunk(self._located.folder)
        start = starting_head(trunk, self._located, fresh=plan.fresh, seed=plan.recipe.seed)
        folder.claim(
            {
                "model": self._located.id,
                "weights": fingerprint(self._located.folder),
                "draft_vocab": plan.draft_vocab,
                "fresh": plan.fresh,
                "longest": plan.longest,
            },
            resume=plan.resume,
        )
        with folder.alone():
            return self._work(trunk, start)

    def _work(self, trunk: Trunk, start: Start) -> Forged:
        plan = self._plan
        pieces = self._text(trunk)
        learnt, kept = held_out(pieces, HELD_OUT)
        head = self._head(start, [pieces[index] for index in learnt])
        laws = self._laws(head, pieces)
        trainer = Trainer(head, laws, learnt, plan.recipe)
        return self._train(trainer, lambda: measure(head, laws, kept))

    def _text(self, trunk: Trunk) -> list[Piece]:
        plan, path = self._plan, self._folder.text
        prompts = read_prompts(plan.prompts) if plan.prompts else default_prompts()
        add_texts(trunk.tokenizer, plan.texts, path, longest=plan.longest)
        write_answers(
            trunk,
            prompts,
            path,
            tokens=plan.tokens,
            longest=plan.longest,
            seed=plan.recipe.seed,
            on_tokens=lambda done, total: self._report(
                ForgeProgress("write", "the model answers prompts", done, total)
            ),
        )
        return read_pieces(path)

    def _head(self, start: Start, learnt: list[Piece]) -> Head:
        """The starting head over the draft vocabulary, which is chosen once for a run folder."""
        folder = self._folder
        if not folder.vocab.exists():
            folder.write_vocab(_vocab(self._plan.draft_vocab, start, learnt))
        ids = folder.read_vocab(start.vocabulary)
        size = "all" if ids is None else f"{len(ids):,}"
        share = f"{coverage(learnt, ids):.1%} of the text's"
        self._report(ForgeProgress("load", f"drafting over {size} tokens, {share}"))
        return start.over(ids)

    def _laws(self, head: Head, pieces: list[Piece]) -> LawFile:
        laws = LawFile(self._folder.laws, pieces, head.trunk.args.hidden_size)
        laws.complete(
            head,
            lambda done, total: self._report(
                ForgeProgress("read", "the trunk reads the text", done, total)
            ),
        )
        return laws

    def _train(self, trainer: Trainer, measured: Callable[[], Measured]) -> Forged:
        folder = self._folder
        curve: list[Point] = []
        if folder.checkpoint.exists():
            trainer.restore(folder.checkpoint)
            curve = [p for p in read_curve(folder.curve) if p.step <= trainer.progress.step]
            if not curve:
                raise ModelError(f"{folder.curve} lacks what was measured; delete {folder.path}.")
        if not curve:
            curve = self._measure(trainer, measured, curve)
        while trainer.spent < 1.0:
            legs = math.floor(trainer.spent * _MEASUREMENTS) + 1
            trainer.run(legs / _MEASUREMENTS, self._after_step)
            curve = self._measure(trainer, measured, curve)
        self._hand_out()
        best = max(curve, key=_merit)
        return Forged(self._out, curve[0].measured, best.measured, trainer.progress.step)

    def _hand_out(self) -> None:
        with replacing(self._out) as staging:
            shutil.copyfile(self._folder.best, staging)

    def _after_step(self, progress: Progress) -> None:
        total = self._plan.recipe.seconds
        detail = f"step {progress.step}, loss {progress.loss:.3f}"
        self._report(ForgeProgress("train", detail, progress.seconds, total))

    def _measure(
        self, trainer: Trainer, measured: Callable[[], Measured], curve: list[Point]
    ) -> list[Point]:
        """Measure, keep the head if it is the best so far, and make a checkpoint."""
        folder, progress = self._folder, trainer.progress
        began = time.monotonic()
        result = measured()
        progress.seconds += time.monotonic() - began
        point = Point(progress.step, progress.tokens, progress.seconds, progress.loss, result)
        if _merit(point) > max(map(_merit, curve), default=-1.0):
            write_head(trainer.head, folder.best)
            self._hand_out()
        curve = [*curve, point]
        write_curve(folder.curve, curve)
        trainer.save(folder.checkpoint)
        self._report(
            ForgeProgress("train", "measured", progress.seconds, self._plan.recipe.seconds, point)
        )
        return curve


def _merit(point: Point) -> float:
    """What makes a head better: acceptance of the first draft, on which all others hang."""
    return point.measured.overlap[0]


def _vocab(wanted: int | None, start: Start, learnt: list[Piece]) -> list[int] | None:
    """The ids to draft over, or None for all."""
    if wanted is None and not start.fresh:
        existing = start.head.vocab
        return None if existing is None else read_ints(existing)
    size = _DEFAULT_VOCAB if wanted is None else wanted
    if size == 0 or size >= start.vocabulary:
        return None
    return frequent_tokens(learnt, size, vocabulary=start.vocabulary)
