"""The learning curve: a CSV file with one row per measurement."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from mtplx_engine.errors import ModelError
from mtplx_engine.forge.plan import MEASURED_DEPTHS, Measured, Point
from mtplx_engine.forge.replacing import replacing

_DEPTHS = range(1, MEASURED_DEPTHS + 1)
_COLUMNS = (
    "step",
    "tokens",
    "seconds",
    "loss",
    *(f"overlap_{depth}" for depth in _DEPTHS),
    *(f"agreement_{depth}" for depth in _DEPTHS),
)


def write_curve(path: Path, points: Sequence[Point]) -> None:
    """Write all points."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for point in points:
        measured = (*point.measured.overlap, *point.measured.agreement)
        writer.writerow(
            [
                point.step,
                point.tokens,
                f"{point.seconds:.1f}",
                f"{point.loss:.4f}",
                *(f"{value:.4f}" for value in measured),
            ]
        )
    with replacing(path) as staging:
        staging.write_text(file.getvalue(), encoding="utf-8")


def read_curve(path: Path) -> list[Point]:
    """Read what `write_curve` wrote; no file is no points.

    Raises:
        ModelError: It holds something else.
    """
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [_point(row) for row in csv.DictReader(file)]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is damaged; delete it.") from error


def _point(row: dict[str, str]) -> Point:
    measured = Measured(
        tuple(float(row[f"overlap_{depth}"]) for depth in _DEPTHS),
        tuple(float(row[f"agreement_{depth}"]) for depth in _DEPTHS),
    )
    return Point(
        int(row["step"]), int(row["tokens"]), float(row["seconds"]), float(row["loss"]), measured
    )
