"""Log-probabilities as OpenAI's older surface writes them: parallel lists over all tokens."""

import codecs
from collections.abc import Iterable

from mtplx_client.wire.completions import CompletionLogprobs
from mtplx_engine.events import Echo, ScoredToken
from mtplx_server.protocols.openai_logprobs import logprob

_UNSHOWN = "\N{REPLACEMENT CHARACTER}"
_decoder = codecs.getincrementaldecoder("utf-8")


class Scores:
    """Of one answer: what was scored and not yet written."""

    def __init__(self) -> None:
        self._lists = _empty()
        self._offset = 0
        # A character may span tokens; it counts once it is whole.
        self._characters = _decoder("replace")

    @property
    def ready(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._lists.tokens)

    def begin_prompt(self, echo: Echo) -> None:
        """The first token of a prompt, which has no score."""
        content = _first_bytes(echo)
        self._append(_name(content, echo.tokens[0]), content, None, None)

    def add(self, scores: Iterable[ScoredToken]) -> None:
        """Further tokens, of the prompt or of the answer."""
        for each in scores:
            chosen = each.chosen
            name = _name(chosen.bytes, chosen.text)
            top = {_name(likely.bytes, likely.text): logprob(likely) for likely in each.top}
            top.setdefault(name, logprob(chosen))
            self._append(name, chosen.bytes, logprob(chosen), top)

    def take(self) -> CompletionLogprobs:
        """All that was added since the last time."""
        taken, self._lists = self._lists, _empty()
        return taken

    def _append(
        self, name: str, content: bytes, value: float | None, top: dict[str, float] | None
    ) -> None:
        self._lists.tokens.append(name)
        self._lists.token_logprobs.append(value)
        self._lists.top_logprobs.append(top)
        self._lists.text_offset.append(self._offset)
        self._offset += len(self._characters.decode(content))


def _empty() -> CompletionLogprobs:
    return CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])


def _name(content: bytes, text: str) -> str:
    """What a token stands for, so that no two look the same; its text if it adds nothing."""
    try:
        return content.decode() or text
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)


def _first_bytes(echo: Echo) -> bytes:
    """What the first token adds to the text: nothing where it is a mark that was put before it."""
    first = echo.tokens[0]
    if echo.text.startswith(first):
        return first.encode()
    if first.endswith(_UNSHOWN):
        return echo.text.encode()[: len(first.rstrip(_UNSHOWN).encode()) + 1]
    return b""
