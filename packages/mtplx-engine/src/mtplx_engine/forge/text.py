"""Token sequences on disk, one JSON object a line, in a file that only grows."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtplx_engine.errors import ModelError


@dataclass(frozen=True, slots=True)
class Piece:
    """One sequence.

    Attributes:
        ids: Its tokens.
        start: Tokens before this index are a prompt: read, but not learnt from.
    """

    ids: tuple[int, ...]
    start: int = 0


def append_pieces(path: Path, pieces: Iterable[Piece]) -> None:
    """Add sequences at the end of a file."""
    lines = [json.dumps({"start": piece.start, "ids": piece.ids}) + "\n" for piece in pieces]
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(lines))


def read_pieces(path: Path) -> list[Piece]:
    """Read a file of sequences; a last line that a killed process left unfinished is cut off.

    Raises:
        ModelError: A line in the middle is damaged.
    """
    if not path.is_file():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return [_parse(path, number, line) for number, line in enumerate(whole.splitlines(), start=1)]


def _parse(path: Path, number: int, line: bytes) -> Piece:
    try:
        content: dict[str, Any] = json.loads(line)
        return Piece(tuple(map(int, content["ids"])), int(content["start"]))
    except (ValueError, LookupError, TypeError) as error:
        raise ModelError(f"{path}, line {number} is damaged; delete the file.") from error


def held_out(pieces: Sequence[Piece], share: float) -> tuple[list[int], list[int]]:
    """Split into training and held-out sequences, by index.

    The choice hangs on a hash of the prompt, or of the whole text where there is none: answers to
    one prompt are on one side, and a file that grows does not move what it held before.

    Raises:
        ModelError: There are fewer than two different prompts or texts.
    """
    marks = [_mark(piece) for piece in pieces]
    limit = max(share, min(marks, default=0.0))
    kept = [index for index, mark in enumerate(marks) if mark <= limit]
    learnt = [index for index, mark in enumerate(marks) if mark > limit]
    if not learnt:
        raise ModelError(
            "There is too little text to train on: at least two different prompts or pieces of"
            " text are needed, one of them to measure with."
        )
    return learnt, kept


def _mark(piece: Piece) -> float:
    """A number in [0, 1) that looks random and never changes."""
    key = piece.ids[: piece.start] or piece.ids
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
