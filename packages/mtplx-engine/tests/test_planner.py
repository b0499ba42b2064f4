"""The planner against the best it could have done, on simulated rounds.

A simulated model has a cost for every number of drafts and a chance for every draft, both unknown
to the planner. No clock is involved: seconds are made up.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtplx_engine.decode.copying import Copy
from mtplx_engine.decode.experience import Experience, Rate, RoundCosts
from mtplx_engine.decode.planner import MOST_DRAFTS, Plan, Planner

DEEPEST = 8
ROUNDS = 2000
SEEDS = 3
JITTER = 0.1  # a round takes up to so much longer than it should
ADAPTIVE = range(DEEPEST + 1)

Rates = Sequence[float]


def linear(slope: float, first: float = 0.05) -> list[float]:
    """Costs of 0 .. 8 drafts: the first brings the head with it."""
    return [1.0 + slope * drafts + (first if drafts else 0.0) for drafts in ADAPTIVE]


def expected(rates: Rates, drafts: int) -> float:
    return 1.0 + sum(itertools.accumulate(rates[:drafts], lambda a, b: a * b))


def best_speed(rates: Rates, costs: Sequence[float]) -> float:
    """Tokens a second of the best fixed depth."""
    return max(expected(rates, d) / costs[d] for d in ADAPTIVE) / (1.0 + JITTER / 2)


@dataclass
class Simulation:
    """Rounds of one answer after another of one model."""

    costs: Sequence[float]
    seed: int = 0
    first_time: float = 1.0  # how much slower the first round of each width is, for its kernels
    experience: Experience = field(default_factory=lambda: Experience(DEEPEST))
    seconds: float = 0.0
    tokens: int = 0
    plans: Counter[tuple[str, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.widths: set[tuple[str, int]] = set()

    def run(
        self,
        planner: Planner,
        rates: Rates,
        rounds: int,
        *,
        copy: Copy | None = None,
        copies: float = 0.0,
        scale: Callable[[int], float] = lambda _: 1.0,
    ) -> None:
        for index in range(rounds):
            plan = planner.plan(100, copy)
            chances = [copies] * plan.drafts if plan.given else rates
            accepted = 0
            while accepted < plan.drafts and self.random.random() < chances[accepted]:
                accepted += 1
            self._spend(plan, scale(index))
            self.tokens += accepted + 1
            planner.observe(plan, accepted)

    def _spend(self, plan: Plan, scale: float) -> None:
        width = (plan.lane, plan.drafts)
        drafts = plan.drafts if plan.lane == "mtp" else 0
        copied = 0.05 * plan.drafts if plan.lane == "copy" else 0.0
        seconds = scale * (self.costs[drafts] + copied) * (1.0 + JITTER * self.random.random())
        slower = 1.0 if width in self.widths else self.first_time
        self.experience.costs.add(seconds * slower, *width)
        self.widths.add(width)
        self.plans[width] += 1
        self.seconds += seconds

    @property
    def speed(self) -> float:
        return self.tokens / self.seconds


SETTINGS = list(itertools.product([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97], [0.02, 0.15, 0.3, 0.6]))


@pytest.mark.parametrize("first_time", [1.0, 10.0])
@pytest.mark.parametrize(("rate", "slope"), SETTINGS)
def test_it_is_nearly_as_fast_as_the_best_fixed_depth(
    rate: float, slope: float, first_time: float
) -> None:
    rates, costs = [rate] * DEEPEST, linear(slope)
    speeds = []
    for seed in range(SEEDS):
        simulation = Simulation(costs, seed, first_time)
        simulation.run(Planner(simulation.experience, ADAPTIVE), rates, ROUNDS)
        speeds.append(simulation.speed)
    assert sum(speeds) / len(speeds) > 0.955 * best_speed(rates, costs)


@pytest.mark.parametrize(
    "costs",
    [
        linear(0.1),
        linear(0.02, first=0.5),  # a heavy head
        [1.0, 1.1, 1.2, 1.3, 2.0, 2.1, 2.2, 2.3, 2.4],  # kernels of four rows
        [1.0, 1.6, 1.61, 1.62, 1.63, 1.64, 1.65, 1.66, 1.67],  # any block is dear, its width is not
    ],
)
@pytest.mark.parametrize(
    "rates",
    [
        [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2],
        [0.7, 0.3, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05],
        [0.5, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9],
    ],
)
def test_it_follows_uneven_chances_and_costs(rates: Rates, costs: Sequence[float]) -> None:
    speeds = []
    for seed in range(SEEDS):
        simulation = Simulation(costs, seed)
        simulation.run(Planner(simulation.experience, ADAPTIVE), rates, ROUNDS)
        speeds.append(simulation.speed)
    assert sum(speeds) / len(speeds) > 0.96 * best_speed(rates, costs)


def test_a_poor_fixed_depth_would_fail_here() -> None:
    """The bound means something: depth 3 is far from the best where drafts never stand."""
    simulation = Simulation(linear(0.15))
    simulation.run(Planner(simulation.experience, range(3, 4)), [0.0] * DEEPEST, ROUNDS)
    assert simulation.speed < 0.8 * best_speed([0.0] * DEEPEST, linear(0.15))


@pytest.mark.parametrize("seed", range(5))
def test_it_stops_drafting_and_comes_back(seed: int) -> None:
    simulation = Simulation(linear(0.15), seed)
    planner = Planner(simulation.experience, ADAPTIVE)
    simulation.run(planner, [0.0] * DEEPEST, 500)
    assert planner.depth == 0
    simulation.run(planner, [0.9] * DEEPEST, 300)
    assert planner.depth >= 4
    simulation.run(planner, [0.0] * DEEPEST, 200)
    assert planner.depth == 0


def test_phases_of_a_text_are_followed() -> None:
    """Half of the time nothing can be guessed, half of it nearly everything."""
    good, bad, costs = [0.9] * DEEPEST, [0.05] * DEEPEST, linear(0.15)
    simulation = Simulation(costs)
    planner = Planner(simulation.experience, ADAPTIVE)
    fixed = {d: Simulation(costs) for d in (0, 1, 2, 4, 8)}
    planners = {d: Planner(fixed[d].experience, range(d, d + 1)) for d in fixed}
    for _ in range(4):
        for rates in (good, bad):
            simulation.run(planner, rates, 300)
            for depth, other in fixed.items():
                other.run(planners[depth], rates, 300)
    assert simulation.speed > max(other.speed for other in fixed.values())


def test_costs_that_grow_with_the_text_are_followed() -> None:
    rates, costs = [0.8] * DEEPEST, linear(0.15)
    simulation, fixed = Simulation(costs), Simulation(costs)

    def growing(index: int) -> float:
        return 1.0 + index / ROUNDS

    best = max(ADAPTIVE, key=lambda d: expected(rates, d) / costs[d])
    simulation.run(Planner(simulation.experience, ADAPTIVE), rates, ROUNDS, scale=growing)
    fixed.run(Planner(fixed.experience, range(best, best + 1)), rates, ROUNDS, scale=growing)
    assert simulation.speed > 0.95 * fixed.speed


def test_experience_helps_the_next_answer() -> None:
    rates = [0.0] * DEEPEST
    simulation = Simulation(linear(0.3))
    simulation.run(Planner(simulation.experience, ADAPTIVE), rates, 300)
    assert Planner(simulation.experience, ADAPTIVE).depth == 0
    assert Planner(Experience(DEEPEST), ADAPTIVE).depth > 0


@pytest.mark.parametrize("depth", [0, 1, 3, 8])
def test_a_fixed_depth_stays(depth: int) -> None:
    simulation = Simulation(linear(0.5))
    simulation.run(Planner(simulation.experience, range(depth, depth + 1)), [0.1] * 8, 300)
    assert simulation.plans == {("mtp", depth): 300}


LONG = Copy(tuple(range(MOST_DRAFTS)), 30)
SHORT = Copy(tuple(range(MOST_DRAFTS)), 3)


@pytest.mark.parametrize("copy", [LONG, SHORT])
@pytest.mark.parametrize("depths", [ADAPTIVE, range(3, 4), range(1)])
def test_copies_are_taken_while_they_pay(depths: range, copy: Copy) -> None:
    simulation = Simulation(linear(0.15))
    planner = Planner(simulation.experience, depths)
    simulation.run(planner, [0.5] * DEEPEST, 400, copy=copy, copies=0.95)
    taken = sum(count for (lane, _), count in simulation.plans.items() if lane == "copy")
    assert taken > 300
    widths = (2, 4, 8, MOST_DRAFTS)
    best = max(expected([0.95] * n, n) / (1.0 + 0.05 * n) for n in widths) / (1.0 + JITTER / 2)
    assert simulation.speed > 0.9 * best


@pytest.mark.parametrize("copy", [LONG, SHORT])
@pytest.mark.parametrize("depths", [ADAPTIVE, range(3, 4), range(1)])
def test_copies_that_fail_are_suspended(depths: range, copy: Copy) -> None:
    simulation, without = Simulation(linear(0.15)), Simulation(linear(0.15))
    rates = [0.7] * DEEPEST
    simulation.run(Planner(simulation.experience, depths), rates, 1000, copy=copy, copies=0.0)
    without.run(Planner(without.experience, depths), rates, 1000)
    taken = sum(count for (lane, _), count in simulation.plans.items() if lane == "copy")
    assert 0 < taken < 50
    assert simulation.speed > 0.96 * without.speed


def test_copies_come_back() -> None:
    simulation = Simulation(linear(0.15))
    planner = Planner(simulation.experience, ADAPTIVE)
    simulation.run(planner, [0.7] * DEEPEST, 500, copy=LONG, copies=0.0)
    simulation.plans.clear()
    simulation.run(planner, [0.7] * DEEPEST, 300, copy=LONG, copies=0.98)
    assert sum(count for (lane, _), count in simulation.plans.items() if lane == "copy") > 150


rounds = st.lists(
    st.tuples(st.integers(0, 20), st.booleans(), st.integers(0, 16), st.floats(1e-6, 1e3)),
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(rounds, st.sampled_from([ADAPTIVE, range(1), range(3, 4)]))
def test_it_never_plans_more_than_there_is_room_for(
    history: list[tuple[int, bool, int, float]], depths: range
) -> None:
    experience = Experience(DEEPEST)
    planner = Planner(experience, depths)
    for most, copyable, accepted, seconds in history:
        plan = planner.plan(most, LONG if copyable else None)
        assert 0 <= plan.drafts <= most
        assert plan.lane == "copy" or plan.drafts <= depths[-1]
        assert len(plan.given) == (plan.drafts if plan.lane == "copy" else 0)
        assert plan.given == LONG.tokens[: len(plan.given)]
        experience.costs.add(seconds, plan.lane, plan.drafts)
        planner.observe(plan, min(accepted, plan.drafts))
        assert planner.depth in depths


def test_a_model_without_a_head_is_planned() -> None:
    planner = Planner(Experience(0), range(1))
    for _ in range(40):
        planner.observe(planner.plan(5, None), 0)
    assert planner.depth == 0


def test_a_rate_forgets() -> None:
    rate = Rate()
    for _ in range(200):
        rate.add(hit=True)
    assert rate.mean(0.5) > 0.95
    for _ in range(200):
        rate.add(hit=False)
    assert 0.0 < rate.mean(0.5) < 0.05


def test_a_hint_weighs_little() -> None:
    rate = Rate(memory=0.995)
    for _ in range(500):
        rate.add(hit=True)
    hint = rate.hint(8.0)
    assert hint.mean(0.1) == pytest.approx(8.1 / 9)
    assert Rate().hint(8.0).mean(0.3) == 0.3


def test_costs_between_measured_widths_are_interpolated() -> None:
    costs = RoundCosts()
    for drafts, seconds in ((0, 1.0), (8, 3.0)):
        costs.add(seconds, "mtp", drafts)
        assert not costs.measured("mtp", drafts)
        costs.add(seconds, "mtp", drafts)
    assert costs.seconds("mtp", 2) == pytest.approx(1.5)
    assert costs.seconds("mtp", 8) == 3.0
    assert costs.seconds("copy", 0) == 1.0
    assert 1.0 < costs.seconds("copy", 4) < 2.0


def test_the_first_round_of_a_width_and_a_disturbed_one_count_little() -> None:
    costs = RoundCosts()
    for seconds in (50.0, 1.0, 1.0, 1000.0):
        costs.add(seconds, "mtp", 3)
    assert costs.seconds("mtp", 3) < 1.5


@pytest.mark.parametrize("lane", ["mtp", "copy"])
def test_a_lane_that_was_never_measured_is_priced_like_the_other(lane: str) -> None:
    costs = RoundCosts()
    for _ in range(2):
        if lane == "mtp":
            costs.add(1e-3, "mtp", 3)
        else:
            costs.add(1e-3, "copy", 4)
    assert 5e-4 < costs.seconds("mtp", 1) < 3e-3
    assert 5e-4 < costs.seconds("copy", 2) < 3e-3
