"""Log-probabilities as OpenAI's older surface writes them: parallel lists over all tokens."""

from collections.abc import Iterable

from mtplx_client.wire.completions import CompletionLogprobs
from mtplx_engine.events import Echo, ScoredToken
from mtplx_server.protocols.openai_logprobs import logprob


class Scores:
    """Of one answer: what was scored and not yet written."""

    def __init__(self) -> None:
        self._lists = CompletionLogprobs(
            tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[]
        )
        self._offset = 0

    @property
    def ready(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._lists.tokens)

    def begin_prompt(self, echo: Echo) -> None:
        """The first token of a prompt, which has no score."""
        self._append(echo.tokens[0], None, None)

    def add(self, scores: Iterable[ScoredToken]) -> None:
        """Further tokens, of the prompt or of the answer."""
        for each in scores:
            top = {likely.text: logprob(likely) for likely in each.top}
            top.setdefault(each.chosen.text, logprob(each.chosen))
            self._append(each.chosen.text, logprob(each.chosen), top)

    def take(self) -> CompletionLogprobs:
        """All that was added since the last time."""
        taken = self._lists
        self._lists = CompletionLogprobs(
            tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[]
        )
        return taken

    def _append(self, token: str, value: float | None, top: dict[str, float] | None) -> None:
        self._lists.tokens.append(token)
        self._lists.token_logprobs.append(value)
        self._lists.top_logprobs.append(top)
        self._lists.text_offset.append(self._offset)
        self._offset += len(token)
