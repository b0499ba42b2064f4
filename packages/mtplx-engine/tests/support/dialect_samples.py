"""What samples of the dialects are made of. The samples are in `dialect_samples_<kind>.py`.

Each such module has `SAMPLES`, by name of a dialect, and `TEMPLATES`, the lines of a chat template
that tell it from others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from mtplx_engine.chat.scanning import Parsed
from mtplx_engine.events import CallBroken, CallDelta, CallEnded, CallStarted, TextDelta
from mtplx_engine.tools import Tool

TOOLS = (
    Tool(
        name="get_weather",
        description="The weather of a city.",
        parameters={
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 8},
                "days": {"type": "integer", "minimum": 0, "maximum": 14},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    ),
    Tool(
        name="save-note",
        parameters={
            "properties": {
                "text": {"type": "string", "maxLength": 8},
                "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 2},
                "place": {
                    "type": "object",
                    "properties": {"east": {"type": "boolean"}},
                    "additionalProperties": False,
                },
            },
            "required": ["text", "place"],
            "additionalProperties": False,
        },
    ),
    Tool(name="now"),
)


def fits(name: str, arguments: Any) -> bool:
    """Whether arguments keep to the schema of a tool above."""
    if name == "now":
        return bool(arguments == {})
    if name == "get_weather":
        known = {"city", "days"} >= arguments.keys() >= {"city"}
        return known and len(arguments["city"]) <= 8 and arguments.get("days", 0) in range(15)
    if not {"text", "tags", "place"} >= arguments.keys() >= {"text", "place"}:
        return False
    tags, place = arguments.get("tags", []), arguments["place"]
    short = len(arguments["text"]) <= 8 and len(tags) <= 2 and set(tags) <= {"red", "green"}
    return short and {"east"} >= place.keys() and isinstance(place.get("east", True), bool)


@dataclass(frozen=True)
class Sample:
    """An answer, and the events it must give, with adjacent deltas joined.

    Attributes:
        what: Names it.
        text: Of the answer.
        events: From `said`, `called` and `broken`.
        limited: Whether a limit ended it, rather than the model.
    """

    what: str
    text: str
    events: tuple[Parsed, ...]
    limited: bool = False


def said(text: str) -> tuple[Parsed, ...]:
    """Text of the answer."""
    return (TextDelta(text),)


def called(index: int, name: str, arguments: str) -> tuple[Parsed, ...]:
    """A whole call."""
    return CallStarted(index, name), CallDelta(index, arguments), CallEnded(index)


def broken(index: int, name: str, arguments: str) -> tuple[Parsed, ...]:
    """A call that stays incomplete."""
    return CallStarted(index, name), CallDelta(index, arguments), CallBroken(index)


def joined(events: Sequence[Parsed]) -> tuple[Parsed, ...]:
    """Events with adjacent deltas made one."""
    out: list[Parsed] = []
    for kind, group in groupby(events, key=lambda event: (type(event), getattr(event, "index", 0))):
        run = list(group)
        text = "".join(event.text for event in run if isinstance(event, TextDelta | CallDelta))
        if kind[0] is TextDelta:
            out.append(TextDelta(text))
        elif kind[0] is CallDelta:
            out.append(CallDelta(kind[1], text))
        else:
            out += run
    return tuple(out)


def merged(what: str) -> Mapping[str, Any]:
    """The `SAMPLES` or `TEMPLATES` of all modules."""
    every: dict[str, Any] = {}
    for path in sorted(Path(__file__).parent.glob("dialect_samples_*.py")):
        every |= getattr(import_module(path.stem), what)
    return every
