"""Several answers to one prompt: read once, drawn apart, each as if it were alone."""

from dataclasses import replace

import pytest

from mtplx_engine import (
    Cancelled,
    ChatRequest,
    Conversation,
    Engine,
    InvalidRequest,
    Limits,
    Message,
    Overloaded,
    Sampling,
)

REQUEST = ChatRequest(
    Conversation((Message("user", "Tell me a story about one two three one two"),)),
    Sampling(temperature=1.0, seed=11),
    Limits(max_tokens=40),
    logprobs=0,
)


def drawn(engine: Engine, request: ChatRequest, count: int) -> list[list[int]]:
    results = [generation.result() for generation in engine.submit_choices(request, count)]
    return [[score.chosen.token for score in result.scores] for result in results]


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("copy", [False, True])
def test_choices_do_not_depend_on_their_number_or_on_what_drafts_them(
    tiny_engine: Engine, depth: int, *, copy: bool
) -> None:
    plain = drawn(tiny_engine, replace(REQUEST, depth=0, copy_lane=False), 3)
    request = replace(REQUEST, depth=depth, copy_lane=copy)
    assert drawn(tiny_engine, request, 3) == plain
    assert drawn(tiny_engine, request, 2) == plain[:2]
    assert drawn(tiny_engine, request, 1) == plain[:1]
    assert len({tuple(answer) for answer in plain}) == 3, "choices must not be copies"


def test_greedy_choices_are_alike(qwen_engine: Engine) -> None:
    request = replace(REQUEST, sampling=Sampling(temperature=0.0))
    one, other = drawn(qwen_engine, request, 2)
    assert one == other


def test_choices_have_penalties_and_grammars_of_their_own(qwen_engine: Engine) -> None:
    sampling = replace(REQUEST.sampling, repetition_penalty=1.4)
    request = replace(REQUEST, sampling=sampling)
    both = drawn(qwen_engine, request, 2)
    assert both[:1] == drawn(qwen_engine, request, 1)
    assert both == drawn(qwen_engine, replace(request, depth=0), 2)


def test_the_prompt_is_counted_for_each_and_read_once(qwen_engine: Engine) -> None:
    generations = qwen_engine.submit_choices(REQUEST, 3)
    finished = [generation.result().finished for generation in generations]
    assert len({end.usage.prompt_tokens for end in finished}) == 1
    assert all(end.usage.completion_tokens <= 40 for end in finished)


def test_one_choice_may_leave(qwen_engine: Engine) -> None:
    whole = drawn(qwen_engine, REQUEST, 3)
    generations = qwen_engine.submit_choices(REQUEST, 3)
    generations[1].cancel()
    with pytest.raises(Cancelled):
        generations[1].result()
    for index in (0, 2):
        scores = generations[index].result().scores
        assert [score.chosen.token for score in scores] == whole[index]


def test_too_few_and_too_many_are_refused(qwen_engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="n must be 1 or more"):
        qwen_engine.submit_choices(REQUEST, 0)
    running = qwen_engine.submit_choices(replace(REQUEST, limits=Limits(2000)), 2)
    try:
        with pytest.raises(Overloaded):
            qwen_engine.submit_choices(REQUEST, 10_000)
    finally:
        for generation in running:
            generation.cancel()
