"""What drafting is worth by the kind of text: fixed depths, adaptive depth, and copying.

All ways of decoding answer each prompt in turn, so that their times are neighbours. The order is
reversed from turn to turn. Of every turn the ratios against plain decoding are taken, and of these
the median.
"""

import statistics
from typing import Any

import pytest
from measure import CLASSES, PLAIN, TOKENS, TURNS, Way, Work, chat, keep, record
from pytest_benchmark.fixture import BenchmarkFixture

from mtplx_engine import Engine

FIXED = {f"depth_{depth}": Way(depth) for depth in (1, 2, 3, 4)}
WAYS = {"plain": PLAIN, **FIXED, "adaptive": Way(None), "adaptive_copy": Way(None, copy=True)}

Turn = dict[str, Work]


def take_turn(engine: Engine, prompts: tuple[str, ...], names: list[str], tokens: int) -> Turn:
    """Every way answers every prompt once."""
    done = {name: Work() for name in WAYS}
    for prompt in prompts:
        answers = {
            name: engine.submit(chat(prompt, WAYS[name], tokens=tokens)).result() for name in names
        }
        for name, answer in answers.items():
            done[name].add(answer.finished, same=answer.text == answers["plain"].text)
    return done


def against(turns: list[Turn], name: str, peer: str) -> list[float]:
    """Ratios of two ways' speeds, one a turn."""
    return [turn[name].speed / turn[peer].speed for turn in turns]


def summary(turns: list[Turn], name: str) -> dict[str, Any]:
    """What became of one way."""
    ratios = against(turns, name, "plain")
    works = [turn[name] for turn in turns]
    rounds = sum(work.rounds for work in works)
    # The adaptive ways may have drafted deeper in one turn than in another.
    deepest = max(len(work.judged) for work in works)
    judged, accepted = (
        [sum(dict(enumerate(counts)).get(i, 0) for counts in side) for i in range(deepest)]
        for side in ([w.judged for w in works], [w.accepted for w in works])
    )
    costs = [
        (turn[name].seconds / turn[name].rounds) * turn["plain"].speed
        for turn in turns
        if turn[name].rounds
    ]
    return {
        "ratio": round(statistics.median(ratios), 3),
        "lowest": round(min(ratios), 3),
        "highest": round(max(ratios), 3),
        "tokens_per_second": round(statistics.median(work.speed for work in works), 2),
        "tokens_per_round": round(sum(work.tokens for work in works) / rounds, 3),
        "round_in_plain_steps": round(statistics.median(costs), 3),
        "judged": judged,
        "accepted": accepted,
        "copied": sum(work.copied for work in works),
        "copies_accepted": sum(work.copies_accepted for work in works),
        "same_as_plain": [sum(work.same for work in works), sum(work.answers for work in works)],
    }


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", CLASSES)
def test_ways_of_drafting(engine: Engine, benchmark: BenchmarkFixture, kind: str) -> None:
    prompts, names = CLASSES[kind], list(WAYS)
    turns: list[Turn] = []

    def turn() -> None:
        order = names if len(turns) % 2 == 0 else names[::-1]
        turns.append(take_turn(engine, prompts, order, TOKENS))

    take_turn(engine, prompts[:1], names, max(TOKENS // 4, 2))  # a server has seen its model before
    benchmark.pedantic(turn, rounds=TURNS, iterations=1)

    found = {name: summary(turns, name) for name in names}
    best = max(FIXED, key=lambda name: found[name]["ratio"])
    compared = {
        "best_fixed": best,
        "adaptive_against_best_fixed": against(turns, "adaptive", best),
        "copy_on_against_off": against(turns, "adaptive_copy", "adaptive"),
    }
    for name, value in compared.items():
        if isinstance(value, list):
            compared[name] = round(statistics.median(value), 3)
        record(f"{kind}: {name}", str(compared[name]))
    for name, way in found.items():
        speed = f"{way['ratio']:.3f}x   ({way['tokens_per_second']:.2f} tokens/s)"
        record(f"{kind}: {name}", f"{speed}   {way['tokens_per_round']:.2f} tokens a round")
    benchmark.extra_info.update(kind=kind, ways=found, **compared)
    keep({"ways": found, **compared}, "classes", kind)
