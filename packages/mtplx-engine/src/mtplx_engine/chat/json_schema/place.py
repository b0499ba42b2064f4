"""Where in a schema something stands, and what may stand in a schema at all."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from mtplx_engine.errors import InvalidRequest

# The JSON parser behind us stops at 128; a schema that is put into another form may get deeper.
MOST_LEVELS = 100
_PLAIN = re.compile(r"[\w$-]{1,60}", re.ASCII)
_HALF_PAIR = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Place:
    """A dotted path, for messages."""

    path: str

    def key(self, name: str) -> "Place":
        """The value of a key here."""
        if _PLAIN.fullmatch(name):
            return Place(f"{self.path}.{name}")
        shown = name if len(name) <= 60 else f"{name[:60]}..."
        return Place(f"{self.path}[{json.dumps(shown)}]")

    def item(self, index: int) -> "Place":
        """The element at an index here."""
        return Place(f"{self.path}[{index}]")

    def fault(self, problem: str) -> InvalidRequest:
        """The error to raise because of what stands here."""
        return InvalidRequest(f"The JSON schema is invalid: {problem} (at {self.path}).", self.path)


def check_json(value: Any, place: Place) -> None:
    """Make sure that a value is JSON and not nested too deeply.

    Raises:
        InvalidRequest: It is not.
    """
    todo: list[tuple[Any, Place, int]] = [(value, place, 0)]
    while todo:  # not by recursion, which a deep value would exhaust
        value, here, level = todo.pop()
        if level > MOST_LEVELS:
            raise place.fault(f"it is nested more than {MOST_LEVELS} levels deep")
        if isinstance(value, dict):
            for key in value:
                _check_scalar(key, here)
                if not isinstance(key, str):
                    raise here.fault(f"the key {key!r} is not a string")
            todo += [(inner, here.key(key), level + 1) for key, inner in value.items()]
        elif isinstance(value, list):
            todo += [(inner, here.item(i), level + 1) for i, inner in enumerate(value)]
        else:
            _check_scalar(value, here)


def _check_scalar(value: Any, place: Place) -> None:
    if isinstance(value, str):
        if _HALF_PAIR.search(value):
            raise place.fault("half of a surrogate pair is not a character")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise place.fault(f"{value} is not JSON")
    elif value is not None and not isinstance(value, bool | int):
        raise place.fault(f"a value of type {type(value).__name__} is not JSON")
