"""The law of an answer, enumerated: a round under any processor has the law of plain decoding."""

import itertools

import numpy as np
import pytest
from enumeration import (
    CASES,
    END,
    EXACT,
    PENALTIES,
    PLAIN,
    SIZE,
    WINDOW,
    Case,
    Gates,
    Given,
    Joint,
    Model,
    Plain,
    Tokens,
    distance,
    is_said,
    no_repeats,
    nothing_given,
    speculative,
)

from mtplx_engine.decode.sampling import Sampler

# Filters may hide a history, so those that have some are left out.
HISTORY = [
    name for name, case in CASES.items() if case.asked.presence_penalty and case.sampler is PLAIN
]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_a_round_has_the_law_of_plain_decoding(name: str, depth: int) -> None:
    case, model = CASES[name], Model(depth)
    joint = speculative(case, model, depth)
    assert sum(joint.values()) == pytest.approx(1.0, abs=EXACT)
    assert distance(joint, Plain(case, model).joint(depth + 1)) < EXACT


def copied(said: Tokens) -> int:
    """What a copy would bring: a fixed run."""
    return (1, 2, 0)[len(said) % 3]


def ending(said: Tokens) -> int:
    """A run that ends the answer in its middle and goes on."""
    return (0, END, 1)[len(said) % 3]


def mixed(said: Tokens) -> int | None:
    """A given draft, then the head's, then a given one."""
    return None if len(said) == 1 else 2


@pytest.mark.parametrize("given", [copied, ending, mixed])
@pytest.mark.parametrize("name", CASES)
def test_given_drafts_leave_the_law_unchanged(name: str, given: Given) -> None:
    case, model = CASES[name], Model(4)
    joint = speculative(case, model, 3, given)
    assert sum(joint.values()) == pytest.approx(1.0, abs=EXACT)
    assert distance(joint, Plain(case, model).joint(4)) < EXACT


@pytest.mark.parametrize("name", ["nothing", "penalties", "grammar"])
def test_some_answers_end_inside_a_block(name: str) -> None:
    """So that the two tests above say something about answers that end early."""
    joint = speculative(CASES[name], Model(3), 3)
    assert sum(weight for said, weight in joint.items() if len(said) < 4) > 0.1


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", HISTORY)
def test_a_history_that_stands_still_is_seen(name: str, depth: int) -> None:
    case, model = CASES[name], Model(depth)
    frozen = speculative(case, model, depth, frozen="p")
    assert distance(frozen, Plain(case, model).joint(depth + 1)) > 0.01


def test_evidence_of_another_law_than_the_drafts_came_from_is_seen() -> None:
    case, model = CASES["penalties"], Model(3)
    frozen = speculative(case, model, 3, frozen="q")
    assert distance(frozen, Plain(case, model).joint(4)) > 0.003


XTC = Sampler(1.3, xtc_probability=0.4, xtc_threshold=0.15)


def with_gates(case: Case, gates: Gates) -> Case:
    return Case(case.sampler, case.asked, case.least, case.grammar, case.drafted, gates)


@pytest.mark.parametrize(
    "case",
    [
        Case(XTC),
        Case(XTC, PENALTIES),
        Case(Sampler(1.0, min_p=0.02, xtc_probability=0.4, xtc_threshold=0.1), WINDOW),
        Case(XTC, grammar=no_repeats),
        Case(XTC, PENALTIES, drafted=(0, 3)),
    ],
)
@pytest.mark.parametrize("given", [nothing_given, copied])
def test_xtc_is_a_mixture_over_its_gates(case: Case, given: Given) -> None:
    depth, model = 2, Model(5)
    chance = case.sampler.xtc_probability
    laws: dict[bool, Plain] = {}
    for strikes in (False, True):
        laws[strikes] = Plain(with_gates(case, (strikes,) * (depth + 1)), model)
    mixture: Joint = {}
    for gates in itertools.product((False, True), repeat=depth + 1):
        gated = with_gates(case, gates)
        joint = speculative(gated, model, depth, given)
        assert distance(joint, Plain(gated, model).joint(depth + 1)) < EXACT
        weight = float(np.prod([chance if gate else 1.0 - chance for gate in gates]))
        for said, share in joint.items():
            mixture[said] = mixture.get(said, 0.0) + weight * share
    averaged = Plain(case, model)
    for said in [s for n in range(depth + 1) for s in itertools.product(range(SIZE), repeat=n)]:
        if case.grammar is None or is_said(case.grammar, said):
            averaged._known[said] = (1 - chance) * laws[False](said) + chance * laws[True](said)
    assert distance(mixture, averaged.joint(depth + 1)) < EXACT
    assert distance(mixture, laws[False].joint(depth + 1)) > 0.01, "XTC never dropped anything"
