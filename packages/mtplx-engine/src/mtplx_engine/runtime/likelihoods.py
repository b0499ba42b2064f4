"""From scores, which know ids only, to likelihoods that people and clients can read."""

from collections.abc import Iterable
from typing import Any

from mtplx_engine.decode.scores import Score
from mtplx_engine.decode.token_bytes import TokenBytes
from mtplx_engine.events import Likelihood, ScoredToken


class Likelihoods:
    """Names the tokens of scores.

    Args:
        tokenizer: mlx-lm's tokenizer wrapper.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._bytes = TokenBytes(tokenizer)

    def of(self, scores: Iterable[Score]) -> tuple[ScoredToken, ...]:
        """Likelihoods of some tokens and of the likeliest ones at their places."""
        return tuple(
            ScoredToken(
                self._name(score.token, score.logprob),
                tuple(self._name(token, logprob) for token, logprob in score.top),
            )
            for score in scores
        )

    def _name(self, token: int, logprob: float) -> Likelihood:
        stands_for = self._bytes.of(token)
        return Likelihood(token, stands_for.decode(errors="replace"), stands_for, logprob)
