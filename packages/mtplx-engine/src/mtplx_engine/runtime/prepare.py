"""From a request to what the MLX thread needs: token ids, rule, limits. Pure Python, no arrays.

Runs in a small pool, so that rendering and tokenising a long conversation delays neither the
event loop nor a running generation.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from mtplx_engine.chat.reasoning import ReasoningMarkers, ReasoningStart
from mtplx_engine.chat.render import render
from mtplx_engine.decode.rules import RuleName
from mtplx_engine.decode.sampling import Sampler
from mtplx_engine.errors import ContextOverflow, InvalidRequest
from mtplx_engine.info import ModelInfo
from mtplx_engine.request import (
    Acceptance,
    ChatRequest,
    Conversation,
    RawText,
    Sampling,
    TokenIds,
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with everything resolved.

    Attributes:
        tokens: Ids of the prompt.
        reasoning: How the answer begins; None where the model has no reasoning.
        sampler: How tokens are drawn.
        rule: How drafts are judged.
        seed: Of the request, or fresh.
        depth: Tokens drafted per round; 0 decodes plainly.
        max_tokens: At most so many tokens are emitted; the context window is taken into account.
        stop: Stop strings.
    """

    tokens: list[int]
    reasoning: ReasoningStart | None
    sampler: Sampler
    rule: RuleName
    seed: int
    depth: int
    max_tokens: int
    stop: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preparer:
    """Prepares requests for one model.

    Attributes:
        tokenizer: mlx-lm's tokenizer wrapper.
        info: The model's limits.
        defaults: Sampling for what a request leaves open.
        acceptance: The rule for requests that leave it to the engine.
        longest_token: Characters of the longest token.
    """

    tokenizer: Any
    info: ModelInfo
    defaults: Sampling
    acceptance: Acceptance
    longest_token: int

    def prepare(self, request: ChatRequest) -> Prepared:
        """Render, tokenise and resolve.

        Raises:
            InvalidRequest: The request cannot be served by this model.
            ContextOverflow: The prompt leaves no room for an answer.
        """
        tokens, reasoning = self._tokens(request)
        room = self.info.context_length - len(tokens)
        if room < 1:
            raise ContextOverflow(len(tokens), self.info.context_length)
        sampling = request.sampling
        sampler = self._sampler(sampling)
        seed = secrets.randbits(64) if sampling.seed is None else sampling.seed
        return Prepared(
            tokens=tokens,
            reasoning=reasoning,
            sampler=sampler,
            rule=self._rule(request, sampler),
            seed=seed,
            depth=self._depth(request),
            max_tokens=min(request.limits.max_tokens or room, room),
            stop=request.limits.stop,
        )

    def _tokens(self, request: ChatRequest) -> tuple[list[int], ReasoningStart | None]:
        match request.prompt:
            case Conversation() as conversation:
                text = render(conversation, self.tokenizer)
                self._check_text(text)
                tokens = self.tokenizer.encode(text, add_special_tokens=False)
                reasoning = self._reasoning(text)
            case RawText(text):
                self._check_text(text)
                tokens, reasoning = self.tokenizer.encode(text), None
            case TokenIds(ids):
                tokens, reasoning = list(ids), None
                largest = len(self.tokenizer)
                if any(not 0 <= token < largest for token in tokens):
                    raise InvalidRequest(f"Token ids must be in [0, {largest}).", "prompt")
        if not tokens:
            raise InvalidRequest("The prompt is empty.", "prompt")
        return tokens, reasoning

    def _check_text(self, text: str) -> None:
        """Refuse what is not text, and what cannot fit, before tokenising megabytes of it."""
        try:
            text.encode()
        except UnicodeEncodeError:
            message = "The prompt holds half of a surrogate pair, which is not a character."
            raise InvalidRequest(message, "messages") from None
        at_least = len(text) // self.longest_token
        if at_least > self.info.context_length:
            raise ContextOverflow(at_least, self.info.context_length)

    def _reasoning(self, prompt: str) -> ReasoningStart | None:
        if not self.tokenizer.has_thinking:
            return None
        markers = ReasoningMarkers(self.tokenizer.think_start, self.tokenizer.think_end)
        return ReasoningStart(markers, markers.opened_by(prompt))

    def _sampler(self, sampling: Sampling) -> Sampler:
        def resolve(name: str) -> Any:
            value = getattr(sampling, name)
            return getattr(self.defaults, name) if value is None else value

        return Sampler(
            temperature=resolve("temperature"),
            top_k=resolve("top_k"),
            top_p=resolve("top_p"),
            min_p=resolve("min_p"),
        )

    def _rule(self, request: ChatRequest, sampler: Sampler) -> RuleName:
        if sampler.greedy:
            return "greedy"
        asked = self.acceptance if request.acceptance == "auto" else request.acceptance
        if asked == "auto":
            return "rejection" if request.sampling.seed is None else "coupled"
        return asked

    def _depth(self, request: ChatRequest) -> int:
        if request.depth is None:
            return self.info.default_depth
        if request.depth > self.info.max_depth:
            limit = f"depth must be at most {self.info.max_depth} here; got {request.depth}."
            raise InvalidRequest(f"{limit} MTP is {self.info.mtp_reason}.", "depth")
        return request.depth
