"""What the benchmarks share: settings, prompts, requests, timing, and what was measured."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mtplx_engine import ChatRequest, Conversation, Finished, Limits, Message, Sampling

MODEL = os.environ.get("MTPLX_BENCH_MODEL")  # a folder or an id; None: the embedded default
TOKENS = int(os.environ.get("MTPLX_BENCH_TOKENS", "64"))  # of an answer
TURNS = int(os.environ.get("MTPLX_BENCH_TURNS", "3"))  # of everybody, where many take turns
RESULTS = os.environ.get("MTPLX_BENCH_RESULTS")  # a file that the results are written to

PROMPTS = (
    "What is the capital of France? Tell me about it.",
    "Write a short story about a bridge.",
    "Explain how the heart works.",
    "Give me five tips for sleeping well.",
)

_MILL = (
    "The old mill stands by the river. Every morning the miller opens the gate, and the wheel"
    " begins to turn. In spring the water is high and the stones run fast. In autumn the farmers"
    " bring their wheat and wait in the yard."
)
_LETTER = (
    "Dear Anna, the train leaves at nine on Monday and arrives in Vienna at noon. Please bring the"
    " tickets and the blue suitcase. My brother will meet us at the station with his car, and we"
    " will have lunch in the old town."
)
_CODE = '''def area(width, height):
    """The area of a rectangle."""
    if width < 0 or height < 0:
        raise ValueError("negative side")
    return width * height'''

CLASSES = {
    "prose": PROMPTS[1:],
    "code": (
        "Write a Python function that checks whether a number is prime, with a docstring.",
        "Write a Python class for a stack with push, pop and peek.",
    ),
    "json": (
        "Write a JSON object that describes a book: title, author, year, publisher and three"
        " chapters.",
        "Write a JSON object for a person with name, age, address and three hobbies.",
    ),
    "copy": (
        f"Repeat this text, but replace 'river' with 'lake':\n\n{_MILL}",
        f"Rewrite the sentence with one change, 'lunch' becomes 'dinner':\n\n{_LETTER}",
        "Repeat this code, but with the word 'side' instead of 'rectangle':"
        f"\n\n```python\n{_CODE}\n```",
    ),
}

Compare = Callable[[str, Callable[[], float], Callable[[], float], int], float]

table: list[tuple[str, str]] = []
results: dict[str, Any] = {}


def record(what: str, value: str) -> None:
    """Add a line to the table."""
    table.append((what, value))


def keep(value: Any, *keys: str) -> None:
    """Put a value into the results, under nested keys."""
    *folders, name = keys
    place = results
    for folder in folders:
        place = place.setdefault(folder, {})
    place[name] = value


@dataclass(frozen=True, slots=True)
class Way:
    """A way of decoding.

    Attributes:
        depth: Tokens drafted by the head in each round; None: as many as pays.
        copy: Whether drafts may be copied.
    """

    depth: int | None
    copy: bool = False


PLAIN = Way(0)


def chat(prompt: str, way: Way, *, tokens: int = TOKENS) -> ChatRequest:
    """A greedy request."""
    return ChatRequest(
        Conversation((Message("user", prompt),)),
        Sampling(temperature=0.0),
        Limits(max_tokens=tokens),
        depth=way.depth,
        copy_lane=way.copy,
    )


@dataclass(slots=True)
class Work:
    """What some answers took. Their first tokens belong to the prompts and do not count."""

    tokens: int = 0
    seconds: float = 0.0
    rounds: int = 0
    judged: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    copied: int = 0
    copies_accepted: int = 0
    same: int = 0  # answers that were the peer's, word for word
    answers: int = 0

    def add(self, finished: Finished, *, same: bool = True) -> None:
        """Count an answer."""
        how = finished.speculation
        self.tokens += finished.usage.completion_tokens - 1
        self.seconds += finished.timings.decode_s
        self.rounds += how.rounds
        self.judged = _sum(self.judged, how.drafted)
        self.accepted = _sum(self.accepted, how.accepted)
        self.copied += how.copied
        self.copies_accepted += how.copies_accepted
        self.same += same
        self.answers += 1

    @property
    def speed(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds


def _sum(totals: list[int], more: tuple[int, ...]) -> list[int]:
    size = max(len(totals), len(more))
    padded = ([*counts, *[0] * (size - len(counts))] for counts in (totals, more))
    return [a + b for a, b in zip(*padded, strict=True)]


def timed(work: Callable[[], int]) -> float:
    """Units per second of something that returns how many units it did."""
    start = time.perf_counter()
    units = work()
    return units / (time.perf_counter() - start)
