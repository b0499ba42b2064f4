"""What speculation pays with: verify passes by their width, and draft steps."""

import json
import statistics
from collections.abc import Callable

from mtplx_engine.backend import mx

from bare import Bare
from measure import TURNS, keep, record, timed
from pytest_benchmark.fixture import BenchmarkFixture

WIDEST = 16
PASSES = 5
CONTEXT = 96


def passes(bare: Bare, width: int) -> Callable[[], float]:
    """Passes per second over so many tokens, each waited for."""
    model = bare.trunk.model
    caches, block = model.make_cache(), mx.array([[500] * width])
    mx.eval(model(mx.array([[500] * CONTEXT]), cache=caches))

    def run() -> int:
        for _ in range(PASSES):
            mx.eval(mx.argmax(model(block, cache=caches)[0], axis=-1))
            for cache in caches:
                cache.trim(width)
        return PASSES

    return lambda: timed(run)


def draft_steps(bare: Bare) -> Callable[[], float]:
    """Draft steps per second, waited for at the end of each block."""
    head = bare.head
    tokens = mx.array([[500] * CONTEXT])
    hidden = head.trunk.body(tokens, bare.trunk.model.make_cache())
    cache = head.make_cache()
    mx.eval(hidden, head.read(hidden, tokens, cache))

    def block() -> int:
        state, token = hidden[:, -1:], tokens[:, -1:]
        for _ in range(PASSES):
            state = head.read(state, token, cache)
            token = mx.argmax(head.draft_logits(state[0, 0]))[None, None]
        mx.eval(token)
        cache[0].trim(PASSES)
        return PASSES

    return lambda: timed(lambda: sum(block() for _ in range(PASSES)))


def test_costs_in_plain_steps(bare: Bare, benchmark: BenchmarkFixture) -> None:
    """v(k) and c."""
    work = {str(width): passes(bare, width) for width in range(1, WIDEST + 1)}
    work["draft"] = draft_steps(bare)
    costs: dict[str, list[float]] = {name: [] for name in work}

    def turn() -> None:
        for name, run in work.items():
            step = work["1"]()
            costs[name].append(step / run())

    benchmark.pedantic(turn, rounds=2 * TURNS - 1, warmup_rounds=1, iterations=1)
    medians = {name: round(statistics.median(each), 3) for name, each in costs.items()}
    draft = medians.pop("draft")
    verify = {**medians, "1": 1.0}
    benchmark.extra_info.update(verify=verify, draft=draft)
    keep(verify, "costs", "verify")
    keep(draft, "costs", "draft")
    record("a pass over k tokens, in plain steps", json.dumps(verify))
    record("a draft, in plain steps", f"{draft:.3f}")
