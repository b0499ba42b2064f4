"""Log-probabilities as OpenAI's replies carry them."""

from mtplx_client.wire.chat import TokenLogprob, TopLogprob
from mtplx_engine.events import Likelihood, ScoredToken

_LEAST = -9999.0  # JSON has no infinity


def logprob(likelihood: Likelihood) -> float:
    """A natural log-probability that JSON can hold."""
    return max(likelihood.logprob, _LEAST)


def chat_logprob(scored: ScoredToken) -> TokenLogprob:
    """One token in the shape of Chat Completions."""
    chosen = scored.chosen
    return TokenLogprob(
        token=chosen.text,
        logprob=logprob(chosen),
        bytes=list(chosen.bytes),
        top_logprobs=[
            TopLogprob(token=each.text, logprob=logprob(each), bytes=list(each.bytes))
            for each in scored.top
        ],
    )
