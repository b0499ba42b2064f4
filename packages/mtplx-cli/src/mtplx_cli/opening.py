"""From command-line options to an open engine, telling a person how far it has come."""

import os

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from mtplx_cli.options import Acceptance, Blas, KVQuant
from mtplx_engine import Engine, EngineOptions
from mtplx_engine.info import LoadProgress


def engine_options(
    model: str | None,
    *,
    mtp: bool | None,
    depth: int | None,
    acceptance: Acceptance,
    blas: Blas,
    copy_lane: bool,
    kv_quant: KVQuant,
    max_active: int = EngineOptions().max_active,
    queue_limit: int = EngineOptions().queue_limit,
) -> EngineOptions:
    """Options as the engine takes them.

    `blas` goes into the environment, where the engine looks for it before it loads MLX. What is
    set there already counts when the option is left at `auto`.
    """
    if blas != "auto":
        os.environ["MTPLX_BLAS"] = blas
    return EngineOptions(
        model=model,
        mtp="auto" if mtp is None else "on" if mtp else "off",
        depth=depth,
        acceptance=acceptance,
        copy_lane=copy_lane,
        kv_quant=kv_quant,
        max_active=max_active,
        queue_limit=queue_limit,
    )


def open_engine(options: EngineOptions, console: Console, *, verbose: bool) -> Engine:
    """Open an engine, with a line per stage and a bar for downloads on `console`.

    Args:
        options: What to open.
        console: Where to report.
        verbose: Also report stages that take seconds only.
    """
    with _LoadReport(console, verbose=verbose) as report:
        return Engine.open(options, on_progress=report)


class _LoadReport:
    """Shows `LoadProgress`; may be called from any thread."""

    def __init__(self, console: Console, *, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose
        self._stage: tuple[str, str] | None = None
        self._task: TaskID | None = None
        self._bar = Progress(
            TextColumn("  "),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> "_LoadReport":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, progress: LoadProgress) -> None:
        stage = (progress.stage, progress.detail)
        if stage != self._stage:
            self._stage = stage
            self._begin(progress)
        if progress.total:
            self._advance(progress)

    def _begin(self, progress: LoadProgress) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._bar.stop()
            self._task = None
        if self._verbose or progress.stage in ("fetch", "convert"):
            self._console.print(progress.detail, markup=False)

    def _advance(self, progress: LoadProgress) -> None:
        if self._task is None:
            self._task = self._bar.add_task("", total=progress.total)
            self._bar.start()
        self._bar.update(self._task, completed=progress.done, total=progress.total)
