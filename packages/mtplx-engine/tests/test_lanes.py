"""A seeded answer is the same whatever drafts it: depth, lane and processors crossed."""

import itertools
import json
from dataclasses import dataclass, field

import pytest

from mtplx_engine import (
    ChatRequest,
    ChatResult,
    Conversation,
    Engine,
    JsonSchema,
    Limits,
    Message,
    Regex,
    Sampling,
    ScoredToken,
)
from mtplx_engine.constraint import Grammar

# What recurs in the prompt is what makes the copy lane propose something.
PROMPT = "Repeat: one two three, one two three, one two three, one two"
FIFTY = Limits(max_tokens=50)

# (depth, copy lane); the depth None is adaptive.
WAYS = [*itertools.product((1, 2, 4, 8, None), (False, True)), (0, True)]


@dataclass(frozen=True)
class Asked:
    """What a request asks for besides the way it is decoded."""

    sampling: dict[str, object] = field(default_factory=dict)
    limits: Limits = FIFTY
    grammar: Grammar | None = None

    def request(self, depth: int | None, *, copy: bool, temperature: float) -> ChatRequest:
        sampling = Sampling(temperature=temperature, seed=7, **self.sampling)
        return ChatRequest(
            Conversation((Message("user", PROMPT),)),
            sampling,
            self.limits,
            depth,
            copy_lane=copy,
            grammar=self.grammar,
            logprobs=2,
        )


ASKED = {
    "nothing": Asked(),
    "penalties": Asked(
        {"repetition_penalty": 1.3, "presence_penalty": 0.4, "frequency_penalty": 0.2}
    ),
    "window": Asked({"repetition_penalty": 1.5, "frequency_penalty": 0.3, "penalty_window": 5}),
    "bias": Asked({"logit_bias": {101: 3.0, 32: -100.0}}),
    "filters": Asked({"top_k": 40, "top_p": 0.9, "min_p": 0.01, "top_n_sigma": 2.0}),
    "xtc": Asked({"xtc_probability": 0.5, "xtc_threshold": 0.05}),
    "xtc and penalties": Asked({"xtc_probability": 0.5, "repetition_penalty": 1.2}),
    "min_tokens": Asked(limits=Limits(50, min_tokens=20, stop_token_ids=(101, 32, 10))),
    "stop tokens": Asked(limits=Limits(50, stop_token_ids=(101, 65, 200))),
    "regex": Asked({"presence_penalty": 0.5}, grammar=Regex("(one|two|[a-f]+, ){4,9}")),
    "schema": Asked(
        {"logit_bias": {258: -100.0}},  # a model of noise that may think thinks for long
        grammar=JsonSchema(
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 6},
                    "kind": {"enum": ["alpha", "beta"]},
                },
                "required": ["name", "kind"],
                "additionalProperties": False,
            }
        ),
        limits=Limits(200),
    ),
}


def tokens(result: ChatResult) -> list[int]:
    return [score.chosen.token for score in result.scores]


def said(result: ChatResult) -> tuple[object, ...]:
    end = result.finished
    return result.text, result.reasoning, tokens(result), end.reason, end.usage


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", ASKED)
def test_a_seeded_answer_does_not_depend_on_what_drafts_it(
    tiny_engine: Engine, name: str, temperature: float
) -> None:
    asked = ASKED[name]
    plain = tiny_engine.submit(asked.request(0, copy=False, temperature=temperature)).result()
    drafted = 0
    for depth, copy in WAYS:
        request = asked.request(depth, copy=copy, temperature=temperature)
        result = tiny_engine.submit(request).result()
        assert said(result) == said(plain), (depth, copy)
        check_scores(result.scores, plain.scores)
        how = result.finished.speculation
        drafted += sum(how.drafted) + how.copied + how.forced
    assert drafted > 0, "nothing was ever drafted, so this proves nothing"


def check_scores(ours: tuple[ScoredToken, ...], theirs: tuple[ScoredToken, ...]) -> None:
    """The model's own law at a position does not depend on how the position was reached."""
    for mine, plain in zip(ours, theirs, strict=True):
        assert mine.chosen.logprob == pytest.approx(plain.chosen.logprob, abs=1e-5)
        ids = [[each.token for each in side.top] for side in (mine, plain)]
        assert ids[0] == ids[1]


@pytest.mark.parametrize("depth", [0, 3, None])
def test_an_answer_under_a_schema_is_what_the_schema_says(
    qwen_engine: Engine, depth: int | None
) -> None:
    for temperature in (0.0, 1.5):
        request = ASKED["schema"].request(depth, copy=True, temperature=temperature)
        result = qwen_engine.submit(request).result()
        assert result.finished.reason == "stop"
        value = json.loads(result.text)
        assert set(value) == {"name", "kind"}
        assert value["kind"] in ("alpha", "beta")
        assert result.finished.speculation.forced > 0 or depth == 0


def test_copies_are_accepted_where_the_answer_repeats_itself(qwen_engine: Engine) -> None:
    """A model that is biased to one token writes nothing else, which is easily copied."""
    request = Asked({"logit_bias": {97: 100.0}}).request(1, copy=True, temperature=0.0)
    how = qwen_engine.submit(request).result().finished.speculation
    assert how.copies_accepted > 20
    assert how.rounds < 25


def test_unseeded_answers_use_both_lanes(qwen_engine: Engine) -> None:
    """Rejection with drafts of both kinds; the law itself is enumerated in test_law_exact."""
    accepted = copied = 0
    for _ in range(10):
        request = ChatRequest(
            Conversation((Message("user", PROMPT),)),
            Sampling(temperature=0.5),
            Limits(max_tokens=80, ignore_eos=True),
            2,
            copy_lane=True,
        )
        finished = qwen_engine.submit(request).result().finished
        assert finished.usage.completion_tokens == 80
        accepted += sum(finished.speculation.accepted)
        copied += finished.speculation.copied
    assert accepted > 0
    assert copied > 0
