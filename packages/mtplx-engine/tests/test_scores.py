"""Log-probabilities are the model's own, of every token, whatever draws and drafts it."""

from collections.abc import Callable
from pathlib import Path

from mtplx_engine.backend import mx

import numpy as np
import pytest

from mtplx_engine import (
    ChatRequest,
    Engine,
    Limits,
    PromptScored,
    Sampling,
    ScoredToken,
    TokenIds,
    TokensScored,
)
from mtplx_engine.models.trunk import load_trunk

LogLaw = Callable[[list[int]], np.ndarray]

PROMPT = tuple(b"one two three, one two three, one two")


@pytest.fixture(scope="module")
def log_law(qwen_folder: Path) -> LogLaw:
    """The law of the token after each prefix, by one pass of mlx-lm's model over all of it."""
    trunk = load_trunk(qwen_folder)

    def law(tokens: list[int]) -> np.ndarray:
        logits = trunk.model(mx.array([tokens]))[0].astype(mx.float32)
        return np.array(logits - mx.logsumexp(logits, axis=-1, keepdims=True))

    return law


def check(scored: tuple[ScoredToken, ...], rows: np.ndarray, top: int) -> None:
    assert len(scored) == len(rows)
    for score, row in zip(scored, rows, strict=True):
        chosen = score.chosen
        assert chosen.logprob == pytest.approx(row[chosen.token], abs=1e-4)
        assert len(score.top) == top
        np.testing.assert_allclose(
            [each.logprob for each in score.top], np.sort(row)[::-1][:top], atol=1e-4
        )
        for each in score.top:
            assert each.logprob == pytest.approx(row[each.token], abs=1e-4)
            assert each.bytes == bytes([each.token]) if each.token < 256 else each.bytes


@pytest.mark.parametrize("depth", [0, 1, 3, None])
@pytest.mark.parametrize("top", [0, 1, 5])
def test_tokens_have_their_place_in_the_models_own_law(
    qwen_engine: Engine, log_law: LogLaw, depth: int | None, top: int
) -> None:
    # Processors that change what is drawn must not change what is reported.
    sampling = Sampling(
        temperature=1.4, seed=5, repetition_penalty=1.3, min_p=0.01, logit_bias={97: 5.0}
    )
    request = ChatRequest(
        TokenIds(PROMPT), sampling, Limits(40), depth, copy_lane=True, logprobs=top
    )
    result = qwen_engine.submit(request).result()
    answer = [score.chosen.token for score in result.scores]
    assert len(answer) == result.finished.usage.completion_tokens
    rows = log_law([*PROMPT, *answer])[len(PROMPT) - 1 : -1]
    check(result.scores, rows, top)
    # Special tokens have bytes, but are no text.
    said = b"".join(s.chosen.bytes for s in result.scores if s.chosen.token < 256)
    assert said.decode(errors="replace") == result.text


@pytest.mark.parametrize("max_tokens", [0, 3])
@pytest.mark.parametrize("top", [0, 4])
def test_a_prompt_is_scored_at_every_position(
    qwen_engine: Engine, log_law: LogLaw, top: int, max_tokens: int
) -> None:
    long = PROMPT * 20  # several chunks
    request = ChatRequest(
        TokenIds(long), Sampling(temperature=0.0), Limits(max_tokens), prompt_logprobs=top
    )
    result = qwen_engine.submit(request).result()
    assert tuple(score.chosen.token for score in result.prompt_scores) == long[1:]
    check(result.prompt_scores, log_law(list(long))[:-1], top)
    assert result.finished.usage.completion_tokens <= max_tokens


def test_scores_are_streamed_before_their_text_and_only_where_asked(qwen_engine: Engine) -> None:
    request = ChatRequest(TokenIds(PROMPT * 20), Sampling(temperature=0.0), Limits(30), 2)
    events = list(qwen_engine.submit(request))
    assert not [e for e in events if isinstance(e, TokensScored | PromptScored)]
    asked = ChatRequest(
        request.prompt, request.sampling, request.limits, 2, logprobs=1, prompt_logprobs=1
    )
    events = list(qwen_engine.submit(asked))
    parts = [event for event in events if isinstance(event, TokensScored)]
    assert len(parts) > 1
    assert len([event for event in events if isinstance(event, PromptScored)]) > 1


def test_the_end_token_is_scored(qwen_engine: Engine) -> None:
    sampling = Sampling(temperature=0.0, logit_bias={257: 100.0})
    request = ChatRequest(TokenIds(PROMPT), sampling, Limits(30), logprobs=0)
    (score,) = qwen_engine.submit(request).result().scores
    assert score.chosen.token == 257
    assert score.chosen.bytes == b"<|im_end|>"
