"""The rules on a law that looks at the tokens before, each against what it is defined by."""

import itertools
from collections import Counter

from mtplx_engine.backend import mx

import numpy as np
import pytest
from enumeration import (
    CASES,
    END,
    SIZE,
    START,
    Case,
    Model,
    Tokens,
    Toy,
    block,
    double,
    is_said,
    normal,
    nothing_given,
)

from mtplx_engine.decode.masking import Masking
from mtplx_engine.decode.noise import Noise, Purpose
from mtplx_engine.decode.rules import Coupled, Draft, Greedy, Rejection, tokens_of
from mtplx_engine.decode.verify import correction_law, count_accepted


@pytest.mark.parametrize("rule_of", [Greedy, Coupled])
@pytest.mark.parametrize("name", CASES)
def test_matching_rules_draw_in_a_block_what_they_draw_alone(
    name: str, rule_of: type[Greedy] | type[Coupled]
) -> None:
    case, model, depth = CASES[name], Model(6), 2
    for seed in range(3):
        for drafts in itertools.product(range(SIZE), repeat=depth):
            if case.grammar is not None and not is_said(case.grammar, drafts):
                continue
            law, masking = case.law((), seed=seed)
            for token in drafts if masking is not None else ():
                masking.follow(token)
            rows = mx.stack([model.trunk(drafts[:i]) for i in range(depth + 1)])
            verdict = rule_of(law).judge(rows, [Draft(mx.array(t)) for t in drafts], START)
            for i, drawn in enumerate(verdict.tokens.tolist()):
                if END in drafts[:i]:
                    continue
                alone, _ = case.law(drafts[:i], seed=seed)
                one = rule_of(alone).token(model.trunk(drafts[:i]), START + i)
                assert drawn == one.item()


@pytest.mark.parametrize("name", ["nothing", "penalties", "window 2", "reduced", "min_tokens"])
def test_the_rejection_rule_is_made_of_the_functions_enumerated_here(name: str) -> None:
    case, model = CASES[name], Model(7)
    accepted = Counter[int]()
    for seed in range(60):
        law, _ = case.law((), seed=seed)
        rule = Rejection(law)
        drafts: list[Draft] = []
        said: Tokens = ()
        for i in range(2):
            logits = model.head(said, case)
            drafts.append(rule.draft(logits, START + i, tokens_of(drafts)))
            said = (*said, int(drafts[-1].token.item()))
            assert case.drafted is None or said[-1] in case.drafted
        rows = mx.stack([model.trunk(said[:i]) for i in range(3)])
        verdict = rule.judge(rows, drafts, START)
        round_ = block(case, model, said, nothing_given)
        assert round_ is not None
        p, q = double(round_.p), double(round_.q)
        noise = Noise(seed)
        u = mx.stack([noise.uniform(START + i, Purpose.ACCEPT) for i in range(2)])
        count = count_accepted(mx.array(said), p, q, u.astype(mx.float64))
        gumbel = noise.gumbel(START, SIZE, Purpose.TOKEN)
        last = mx.argmax(mx.log(correction_law(p, q, count)) + gumbel)
        emitted = (*said[: int(count.item())], int(last.item()))
        assert verdict.accepted.item() == count.item()
        assert tuple(verdict.tokens.tolist())[: len(emitted)] == emitted
        accepted[int(count.item())] += 1
    assert len(accepted) == 3


def test_an_end_token_may_come_too_early_where_a_grammar_allows_nothing_else() -> None:
    case = Case(grammar=lambda said: (0, 1, END) if not said else (END,), least=5)
    law, masking = case.law(())
    assert masking is not None
    first = normal(law.log_law(mx.zeros((1, SIZE)), START, []))[0]
    np.testing.assert_allclose(first, [0.5, 0.5, 0.0, 0.0])
    assert not masking.allows(END)
    masking.follow(1)
    rows = normal(law.log_law(mx.zeros((2, SIZE)), START, [mx.array(1)]))
    np.testing.assert_allclose(rows[1], [0.0, 0.0, 0.0, 1.0])
    assert masking.allows(END)


def test_the_head_is_closed_where_it_could_only_draft_an_end_token_too_early() -> None:
    """Its law would have no token left, and a draft out of it would be none of the grammar's."""
    case = Case(grammar=lambda _: (0, END), least=5)
    law, _ = case.law(())
    masking = Masking(Toy(lambda _: (0, END)), frozenset({END}), np.array([2, END]))
    masking.begin(law, START)
    assert not masking.open_to_head
