"""Log-probabilities of tokens under the model's own law, before any processor."""

from dataclasses import dataclass
from typing import cast

from mtplx_engine.backend import mx


@dataclass(frozen=True, slots=True)
class Score:
    """One token's place in the model's law.

    Attributes:
        token: Its id.
        logprob: Natural logarithm of its probability.
        top: The likeliest tokens and their log-probabilities, in falling order.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class LazyScores:
    """Scores of R tokens before they are computed.

    Attributes:
        tokens: (R,) ids.
        chosen: (R,) log-probabilities of these.
        ids: (R, n) likeliest tokens; None when none were asked for.
        values: (R, n) their log-probabilities.
    """

    tokens: mx.array
    chosen: mx.array
    ids: mx.array | None
    values: mx.array | None

    def arrays(self) -> list[mx.array]:
        """For `mx.eval`."""
        parts = (self.tokens, self.chosen, self.ids, self.values)
        return [part for part in parts if part is not None]

    def read(self, count: int) -> list[Score]:
        """Copy the first `count` to the host."""
        tokens = cast("list[int]", self.tokens.tolist())[:count]
        chosen = cast("list[float]", self.chosen.tolist())
        if self.ids is None or self.values is None:
            tops: list[tuple[tuple[int, float], ...]] = [()] * count
        else:
            ids = cast("list[list[int]]", self.ids.tolist())
            values = cast("list[list[float]]", self.values.tolist())
            tops = [tuple(zip(*row, strict=True)) for row in zip(ids, values, strict=True)]
        return [Score(*each) for each in zip(tokens, chosen, tops, strict=False)]


def score(logits: mx.array, tokens: mx.array, top: int) -> LazyScores:
    """Place R tokens in the laws of R rows.

    Args:
        logits: (R, V), as the model gave them.
        tokens: (R,) ids.
        top: How many of the likeliest tokens to list beside each.
    """
    wide = logits.astype(mx.float32)
    law = wide - mx.logsumexp(wide, axis=-1, keepdims=True)
    chosen = mx.take_along_axis(law, tokens[:, None], axis=-1)[:, 0]
    if top == 0:
        return LazyScores(tokens, chosen, None, None)
    top = min(top, law.shape[-1])
    ids = mx.argpartition(-law, kth=top - 1, axis=-1)[:, :top]
    values = mx.take_along_axis(law, ids, axis=-1)
    order = mx.argsort(-values, axis=-1)
    ids, values = (mx.take_along_axis(part, order, axis=-1) for part in (ids, values))
    return LazyScores(tokens, chosen, ids, values)
