"""What the benchmarks share: prompts, timing, and the table of medians."""

import os
import time
from collections.abc import Callable

# The embedded default is measured as it is served, not with the tests' choice of BLAS. This comes
# before anything imports MLX.
os.environ["MTPLX_BLAS"] = os.environ.get("MTPLX_BENCH_BLAS", "auto")

from mtplx_engine import ChatRequest, Conversation, Limits, Message, Sampling

PROMPTS = (
    "What is the capital of France? Tell me about it.",
    "Write a short story about a bridge.",
    "Explain how the heart works.",
    "Give me five tips for sleeping well.",
)

Compare = Callable[[str, Callable[[], float], Callable[[], float], int], float]

table: list[tuple[str, str]] = []


def record(what: str, value: str) -> None:
    """Add a line to the table."""
    table.append((what, value))


def chat(prompt: str, *, depth: int, tokens: int) -> ChatRequest:
    """A greedy request."""
    conversation = Conversation((Message("user", prompt),))
    return ChatRequest(conversation, Sampling(temperature=0.0), Limits(max_tokens=tokens), depth)


def timed(work: Callable[[], int]) -> float:
    """Units per second of something that returns how many units it did."""
    start = time.perf_counter()
    units = work()
    return units / (time.perf_counter() - start)
