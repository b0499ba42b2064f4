"""Ratios against a peer in the same run: ours and the peer's turns alternate, pair by pair.

Absolute times depend on the machine and on what else it does; the ratio of two neighbouring runs
much less. `hatch run bench` prints the medians in a table at the end. With `MTPLX_BENCH_RESULTS`
set to a file's name, what the decoder's benchmarks found is also written there as JSON.
"""

import json
import os
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# The embedded default is measured as it is served, not with the tests' choice of BLAS. This comes
# before anything imports MLX.
os.environ["MTPLX_BLAS"] = os.environ.get("MTPLX_BENCH_BLAS", "auto")

from mtplx_engine.backend import describe

import pytest
from bare import Bare, load_bare
from machine import describe_machine, today, versions
from measure import MODEL, RESULTS, TOKENS, TURNS, Compare, keep, record, results, table
from pytest_benchmark.fixture import BenchmarkFixture

from mtplx_engine import Engine, EngineOptions, SessionCacheOptions


@pytest.fixture(scope="session", autouse=True)
def about() -> None:
    """What the results are of."""
    keep(1, "format")
    keep(today(), "date")
    keep(describe_machine(), "machine")
    keep(describe(), "backend")
    keep(versions(), "versions")
    keep({"tokens": TOKENS, "turns": TURNS}, "settings")
    record("backend", describe())


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    options = EngineOptions(MODEL, mtp="on", session_cache=SessionCacheOptions(ram=0))
    with Engine.open(options) as engine:
        model = engine.model
        keep({"id": model.id, "dtype": model.dtype, "parameters": model.parameters}, "model")
        yield engine


@pytest.fixture(scope="session")
def bare() -> Bare:
    return load_bare()


@pytest.fixture
def compare(benchmark: BenchmarkFixture) -> Compare:
    """Measure ours and a peer's in turns; each returns its speed, higher is better.

    Returns the median ratio of neighbouring runs, which is also kept in the benchmark's extra
    info and in the table.
    """

    def compare(
        what: str, ours: Callable[[], float], peer: Callable[[], float], rounds: int
    ) -> float:
        pairs: list[tuple[float, float]] = []
        peers: list[float] = []
        peer(), ours()  # warm both

        def turn() -> tuple[tuple[()], dict[str, Any]]:
            peers.append(peer())
            return (), {}

        def measured() -> None:
            pairs.append((ours(), peers[-1]))

        benchmark.pedantic(measured, setup=turn, rounds=rounds, iterations=1)
        ratio = statistics.median(mine / theirs for mine, theirs in pairs)
        speeds = tuple(statistics.median(side) for side in zip(*pairs, strict=True))
        benchmark.extra_info.update(what=what, ratio=ratio, ours=speeds[0], peer=speeds[1])
        record(what, f"{ratio:.3f}x   ({speeds[0]:.2f} against {speeds[1]:.2f})")
        return ratio

    return compare


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    if table:
        terminalreporter.section("medians")
        width = max(len(what) for what, _ in table)
        for what, value in table:
            terminalreporter.write_line(f"{what:<{width}}  {value}")
    if RESULTS is None:
        return
    if exitstatus:
        terminalreporter.write_line(f"{RESULTS} was not written: a benchmark failed.", red=True)
        return
    path = Path(RESULTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    terminalreporter.write_line(f"{path} was written.")
