"""Placeholder while the parts are built."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EngineOptions:
    model: str | None = None


class Engine:
    @classmethod
    def open(cls, *a: Any, **k: Any) -> "Engine":
        raise NotImplementedError
