"""Tokens that a grammar leaves no choice about: a lane of its own, as narrow as any other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from mtplx_engine import (
    ChatRequest,
    ChatResult,
    Engine,
    EngineOptions,
    Limits,
    RawText,
    Regex,
    Sampling,
)
from mtplx_engine.decode.experience import Lane, RoundCosts
from mtplx_engine.decode.planner import MOST_DRAFTS
from mtplx_engine.models.loaded import LoadedModel

LONG = "the same words again and again, " * 10
CHOICE = Regex(f"(yes|no), {LONG}")

Spied = list[Any]


def ask(engine: Engine, depth: int | None, *, copy: bool, temperature: float = 0.0) -> ChatResult:
    sampling, limits = Sampling(temperature=temperature, seed=1), Limits(400)
    return engine.submit(
        ChatRequest(RawText("Well?"), sampling, limits, depth, copy_lane=copy, grammar=CHOICE)
    ).result()


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> Spied:
    """How many positions each verify pass had."""
    seen: Spied = []
    read = LoadedModel.read

    def spy(self: LoadedModel, tokens: Any, *args: Any, **options: Any) -> Any:
        seen.append(tokens.shape[1])
        return read(self, tokens, *args, **options)

    monkeypatch.setattr(LoadedModel, "read", spy)
    return seen


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("depth", [0, 2, None])
def test_a_long_forced_stretch_is_read_in_narrow_passes(
    tiny_engine: Engine, widths: Spied, depth: int | None, temperature: float
) -> None:
    result = ask(tiny_engine, depth, copy=False, temperature=temperature)
    assert result.text.endswith(LONG)
    assert max(widths) == MOST_DRAFTS + 1
    how = result.finished.speculation
    assert how.forced > 0.9 * len(LONG) * MOST_DRAFTS / (MOST_DRAFTS + 1)
    assert how.rounds < len(LONG) / MOST_DRAFTS + 5


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("depth", [0, 2])
def test_forced_rounds_are_neither_the_heads_nor_copies(
    qwen_engine: Engine, monkeypatch: pytest.MonkeyPatch, depth: int, *, copy: bool
) -> None:
    timed: set[tuple[Lane, int]] = set()
    judged = 0

    def add(self: RoundCosts, seconds: float, lane: Lane, drafts: int) -> None:
        timed.add((lane, drafts))

    def rate(self: object, *, hit: bool) -> None:
        nonlocal judged
        judged += 1

    monkeypatch.setattr(RoundCosts, "add", add)
    monkeypatch.setattr("mtplx_engine.decode.experience.Rate.add", rate)
    how = ask(qwen_engine, depth, copy=copy).finished.speculation
    assert ("forced", MOST_DRAFTS) in timed
    assert how.forced > len(LONG) / 2
    assert {lane for lane, drafts in timed if drafts > depth} == {"forced"}
    # The head's drafts of one position teach its own rate and the model's.
    assert judged == 2 * sum(how.drafted)
    assert how.copied == how.copies_accepted == 0


@pytest.fixture(scope="module")
def headless(tmp_path_factory: pytest.TempPathFactory, qwen_folder: Path) -> Iterator[Engine]:
    with Engine.open(EngineOptions(model=str(qwen_folder), mtp="off")) as engine:
        yield engine


@pytest.mark.parametrize(
    ("depth", "copy", "mode"),
    [(0, False, "plain"), (0, True, "copy"), (1, False, "mtp"), (1, True, "mtp")],
)
def test_the_mode_is_what_could_draft(
    qwen_engine: Engine, depth: int, *, copy: bool, mode: Literal["mtp", "copy", "plain"]
) -> None:
    how = ask(qwen_engine, depth, copy=copy).finished.speculation
    assert (how.mode, how.acceptance) == (mode, None if mode == "plain" else "greedy")
    assert how.forced > 0


def test_without_a_head_only_copies_could_draft(headless: Engine) -> None:
    how = ask(headless, None, copy=False).finished.speculation
    assert (how.mode, how.depth, how.acceptance) == ("plain", 0, None)
    assert how.forced > 0
