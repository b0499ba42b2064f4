"""Training a head, telling a person how far it has come."""

import shlex
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from mtplx_cli.console import status_console
from mtplx_engine.forge.plan import Forged, ForgeProgress, Plan, Point
from mtplx_engine.forge.train import forge_head
from mtplx_engine.models import embedded
from mtplx_engine.models.locate import Located, locate


def forge_and_report(model: str, plan: Plan) -> None:
    """Train a head; status goes to stderr, the path of the head to stdout.

    Raises:
        EngineError: The model or a file cannot be used.
        KeyboardInterrupt: Ctrl-C; the run folder keeps the last checkpoint.
    """
    console = status_console()
    with _ForgeReport(console) as report:
        located = locate(model, on_progress=lambda progress: report.line(progress.detail))
        forged = forge_head(located, plan, report)
    for line in _summary(forged):
        console.print(line, markup=False)
    for line in _how_to_use(located, forged.path):
        console.print(line, markup=False)
    print(forged.path)  # noqa: T201


class _ForgeReport:
    """Shows `ForgeProgress`: a bar per stage on a terminal, a line per measurement anywhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""
        self._tasks: dict[str, TaskID] = {}
        self._bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> "_ForgeReport":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def line(self, text: str) -> None:
        """Print a line once."""
        if text != self._last:
            self._last = text
            self._console.print(text, markup=False)

    def __call__(self, progress: ForgeProgress) -> None:
        if progress.point is not None:
            self.line(_measurement(progress.point))
        elif progress.total:
            self._advance(progress)
        else:
            self.line(progress.detail)

    def _advance(self, progress: ForgeProgress) -> None:
        if progress.stage not in self._tasks:
            self._tasks[progress.stage] = self._bars.add_task("", total=progress.total)
        self._bars.update(
            self._tasks[progress.stage],
            completed=progress.done,
            total=progress.total,
            description=progress.detail,
        )


def _measurement(point: Point) -> str:
    overlap = " ".join(f"{value:.3f}" for value in point.measured.overlap)
    agreement = " ".join(f"{value:.3f}" for value in point.measured.agreement)
    where = f"{point.seconds / 60:6.1f} min  step {point.step:<6}"
    return f"{where} held out: overlap {overlap}  agreement {agreement}"


def _summary(forged: Forged) -> list[str]:
    before, after = forged.first.overlap[0], forged.best.overlap[0]
    return [
        f"{forged.steps} steps; acceptance of a first draft at temperature 1: {before:.1%} before,"
        f" {after:.1%} after",
    ]


def _how_to_use(located: Located, head: Path) -> list[str]:
    place = located.folder / "mtp.safetensors"
    if located.head is not None:
        return [
            f"{embedded.NAME} always drafts with the head that comes along. To try this one, copy",
            f"{located.folder} without mtplx.json and put the file in the copy as {place.name}.",
        ]
    run = shlex.join(["mtplx", "run", "--model", str(located.folder), "--stats", "Hello"])
    if head.resolve() == place.resolve():
        return [f"It lies where it is found: {run}"]
    return [
        f"To use it: {shlex.join(['cp', str(head), str(place)])}",
        f"Then:      {run}",
    ]
