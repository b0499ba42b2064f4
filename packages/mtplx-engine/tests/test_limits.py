"""Where an answer ends: least and most tokens, stop tokens, the model's own end."""

import pytest

from mtplx_engine import (
    ChatRequest,
    ChatResult,
    Engine,
    InvalidRequest,
    Limits,
    RawText,
    Sampling,
)

END = 257  # <|im_end|> of the tiny models
VOCABULARY = 260
EAGER = {END: 100.0}  # a model that would end at once


def run(engine: Engine, limits: Limits, *, depth: int | None, bias: dict[int, float]) -> ChatResult:
    sampling = Sampling(temperature=1.0, seed=3, logit_bias=bias)
    request = ChatRequest(RawText("abc"), sampling, limits, depth, logprobs=0)
    return engine.submit(request).result()


def tokens(result: ChatResult) -> list[int]:
    return [score.chosen.token for score in result.scores]


@pytest.mark.parametrize("depth", [0, 1, 3, None])
class TestEnds:
    def test_the_end_token_ends(self, qwen_engine: Engine, depth: int | None) -> None:
        result = run(qwen_engine, Limits(20), depth=depth, bias=EAGER)
        assert tokens(result) == [END]
        assert result.finished.reason == "stop"
        assert result.text == ""

    @pytest.mark.parametrize("least", [1, 2, 3, 7, 20])
    def test_not_before_min_tokens(
        self, qwen_engine: Engine, depth: int | None, least: int
    ) -> None:
        limits = Limits(20, min_tokens=least, stop_token_ids=(98,))
        result = run(qwen_engine, limits, depth=depth, bias=EAGER)
        drawn = tokens(result)
        assert END not in drawn[:least]
        assert 98 not in drawn[:least]
        assert drawn[least:] == ([END] if least < 20 else [])
        assert result.finished.reason == ("stop" if least < 20 else "length")

    def test_ignore_eos_goes_on(self, qwen_engine: Engine, depth: int | None) -> None:
        result = run(qwen_engine, Limits(12, ignore_eos=True), depth=depth, bias=EAGER)
        assert tokens(result) == [END] * 12
        assert result.finished.reason == "length"

    def test_a_stop_token_ends_and_is_not_text(
        self, qwen_engine: Engine, depth: int | None
    ) -> None:
        limits = Limits(20, ignore_eos=True, stop_token_ids=(120,))
        result = run(qwen_engine, limits, depth=depth, bias={120: 100.0})
        assert tokens(result) == [120]
        assert result.text == ""
        assert result.finished.reason == "stop"


def test_where_every_token_ends_the_answer_the_first_one_does(qwen_engine: Engine) -> None:
    limits = Limits(8, min_tokens=4, stop_token_ids=tuple(range(VOCABULARY)))
    for depth in (0, 2):
        assert tokens(run(qwen_engine, limits, depth=depth, bias={120: 100.0})) == [120]


@pytest.mark.parametrize("window", [2**31, 2**63, 10**30])
def test_a_window_that_no_text_outgrows_is_none(qwen_engine: Engine, window: int) -> None:
    said = []
    for penalty_window in (None, window):
        sampling = Sampling(temperature=0.0, presence_penalty=1.5, penalty_window=penalty_window)
        request = ChatRequest(RawText("abc"), sampling, Limits(20), 1, logprobs=0)
        said.append(tokens(qwen_engine.submit(request).result()))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 3, "min_tokens": 4}, "more than max_tokens"),
        ({"min_tokens": -1}, "min_tokens"),
        ({"stop": ("",)}, "empty string"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        Limits(**limits)


def test_ids_that_the_model_lacks_are_named(qwen_engine: Engine) -> None:
    for limits, bias in ((Limits(5, stop_token_ids=(10**6,)), {}), (Limits(5), {10**6: 1.0})):
        with pytest.raises(InvalidRequest, match="names token 1000000"):
            run(qwen_engine, limits, depth=1, bias=bias)
