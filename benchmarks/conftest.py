"""Ratios against a peer in the same run: ours and the peer's turns alternate, pair by pair.

Absolute times depend on the machine and on what else it does; the ratio of two neighbouring runs
much less. `hatch run bench` prints the medians in a table at the end.
"""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from mtplx_engine.backend import describe

import pytest
from measure import Compare, record, table
from pytest_benchmark.fixture import BenchmarkFixture

from mtplx_engine import Engine, EngineOptions


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with Engine.open(EngineOptions(mtp="on")) as engine:
        record("backend", describe())
        yield engine


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


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if table:
        terminalreporter.section("medians")
        width = max(len(what) for what, _ in table)
        for what, value in table:
            terminalreporter.write_line(f"{what:<{width}}  {value}")
