"""The folder that a run keeps its state in, so that it can be stopped and go on."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtplx_engine.errors import ModelError
from mtplx_engine.forge.replacing import replacing
from mtplx_engine.models.atomic_folder import exclusive_lock
from mtplx_engine.models.config import read_json


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Its files.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def text(self) -> Path:
        """Token sequences, JSON lines."""
        return self.path / "text.jsonl"

    @property
    def laws(self) -> Path:
        """The trunk's hidden states and laws over the text."""
        return self.path / "laws.bin"

    @property
    def vocab(self) -> Path:
        """The draft vocabulary, a JSON object."""
        return self.path / "vocab.json"

    @property
    def checkpoint(self) -> Path:
        """Weights, optimizer and step."""
        return self.path / "checkpoint.safetensors"

    @property
    def best(self) -> Path:
        """The head that measured best so far, as it would be shipped."""
        return self.path / "best.safetensors"

    @property
    def curve(self) -> Path:
        """One row per measurement."""
        return self.path / "curve.csv"

    def claim(self, settings: dict[str, Any], *, resume: bool) -> None:
        """Make the folder, or see that what is in it was made with the same settings.

        Args:
            settings: What the files in the folder depend on; JSON values.
            resume: Whether there may be a run in it.

        Raises:
            ModelError: It holds a run of other settings, or any where none is wanted, or it cannot
                be made.
        """
        stated = self.path / "settings.json"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if stated.exists() and not resume:
                raise ModelError(f"{self.path} holds a run already, and it was not to be resumed.")
            if not stated.exists():
                _write_json(stated, settings)
        except OSError as error:
            raise ModelError(f"{self.path} cannot be used: {error.strerror}.") from error
        before = read_json(stated)
        for name, value in settings.items():
            if before.get(name) != value:
                raise ModelError(
                    f"{self.path} holds a run with {name} {before.get(name)!r}, not {value!r}."
                    " Take another run folder, or delete this one."
                )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs out, and clear away what a killed one left half-written.

        Raises:
            ModelError: Another run is at work in the folder.
        """

        def refuse() -> None:
            raise ModelError(f"Another run is at work in {self.path}.")

        with exclusive_lock(self.path / "lock", on_wait=refuse):
            for half in self.path.glob(".*-[0-9]*"):
                half.unlink(missing_ok=True)
            yield

    def read_vocab(self, size: int) -> list[int] | None:
        """The draft vocabulary that was chosen, of a model's `size` tokens; None for all.

        Raises:
            ModelError: The file is damaged.
        """
        ids = read_json(self.vocab).get("ids", [])
        if ids is None:
            return None
        if not ids or any(type(token) is not int or not 0 <= token < size for token in ids):
            raise ModelError(f"{self.vocab} is damaged; delete {self.path}.")
        return list(ids)

    def write_vocab(self, ids: list[int] | None) -> None:
        """Keep the draft vocabulary."""
        _write_json(self.vocab, {"ids": ids})


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as staging:
        staging.write_text(json.dumps(content) + "\n", encoding="utf-8")
