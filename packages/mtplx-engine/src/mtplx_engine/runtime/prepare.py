"""From a request to what the MLX thread needs: token ids, rule, limits. Makes no arrays.

Runs in a small pool, so that rendering and tokenising a long conversation delays neither the
event loop nor a running generation.
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

from mtplx_engine.caching import KVFormat, KVSetting
from mtplx_engine.chat.answer_grammar import answer_grammar
from mtplx_engine.chat.parser import AnswerForm
from mtplx_engine.chat.template import ChatTemplate
from mtplx_engine.constraint import Composed, Constraint, ConstraintFactory
from mtplx_engine.conversation import Conversation, Prompt, RawText, TokenIds
from mtplx_engine.decode.adjust import Adjustments
from mtplx_engine.decode.copying import NgramIndex
from mtplx_engine.decode.rules import RuleName
from mtplx_engine.decode.sampling import Sampler
from mtplx_engine.errors import ContextOverflow, InvalidRequest
from mtplx_engine.events import Echo
from mtplx_engine.info import ModelInfo
from mtplx_engine.request import Acceptance, ChatRequest, Sampling
from mtplx_engine.runtime.kv_format import kv_format


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with everything resolved.

    Attributes:
        tokens: Ids of the prompt.
        echo: The prompt as text, where that was asked for.
        form: How the text of the answer is to be read.
        hidden: Special tokens that are no part of that text.
        sampler: How tokens are drawn.
        adjustments: What happens to the logits first.
        rule: How drafts are judged.
        seed: Of the request, or fresh.
        depths: Numbers of tokens that the head may draft in a round.
        copies: The prompt, for copying drafts from, once for each answer wanted; empty: never
            copy.
        constraints: The grammar's state at the start, once for each answer wanted; empty:
            anything may be said.
        min_tokens: No end token is drawn before so many others.
        max_tokens: At most so many tokens are emitted; the context window is taken into account.
        stop: Stop strings.
        end_tokens: Ids that end the answer.
        logprobs: Likeliest tokens to list with each token's score; None: no scores.
        prompt_logprobs: The same for the prompt.
        kv: How keys and values are quantised; None: not at all.
    """

    tokens: list[int]
    echo: Echo | None
    form: AnswerForm
    hidden: frozenset[int]
    sampler: Sampler
    adjustments: Adjustments
    rule: RuleName
    seed: int
    depths: range
    copies: tuple[NgramIndex, ...]
    constraints: tuple[Constraint, ...]
    min_tokens: int
    max_tokens: int
    stop: tuple[str, ...]
    end_tokens: frozenset[int]
    logprobs: int | None
    prompt_logprobs: int | None
    kv: KVFormat | None


@dataclass(frozen=True, slots=True)
class Preparer:
    """Prepares requests for one model.

    Attributes:
        tokenizer: mlx-lm's tokenizer wrapper.
        template: Its chat template.
        info: The model's limits.
        defaults: Sampling for what a request leaves open.
        acceptance: The rule for requests that leave it to the engine.
        copy_lane: Whether requests that leave it to the engine may copy.
        kv_quant: The format of keys and values for requests that leave it to the engine.
        end_tokens: The model's own.
        vocabulary: Number of logits per position.
        grammars: What makes grammars' states; asked for when a request first has a grammar,
            because reading the vocabulary takes a while.
        longest_token: Characters of the longest token.
    """

    tokenizer: Any
    template: ChatTemplate
    info: ModelInfo
    defaults: Sampling
    acceptance: Acceptance
    copy_lane: bool
    kv_quant: KVSetting
    end_tokens: frozenset[int]
    vocabulary: int
    grammars: Callable[[], ConstraintFactory]
    longest_token: int

    def prepare(self, request: ChatRequest, choices: int = 1) -> Prepared:
        """Render, tokenise and resolve.

        Args:
            request: What is asked.
            choices: How many answers are wanted.

        Raises:
            InvalidRequest: The request cannot be served by this model.
            ContextOverflow: The prompt leaves no room for an answer.
        """
        tokens, form = self._read(request)
        constraints = self._constraints(request, form, choices)
        if constraints:
            form = form.enforced()
        limits, sampling = request.limits, request.sampling
        room = self.info.context_length - len(tokens)
        if room < (0 if limits.max_tokens == 0 else 1):
            where = _where(request.prompt)
            raise ContextOverflow(len(tokens), self.info.context_length, where)
        sampler = self._sampler(sampling)
        rule = self._rule(request, sampler)
        end_tokens = frozenset(limits.stop_token_ids)
        if not limits.ignore_eos:
            end_tokens |= self.end_tokens
        may_copy = self._may_copy(request, rule)
        return Prepared(
            tokens=tokens,
            echo=self._echo(request, tokens) if request.echo else None,
            form=form,
            hidden=self.template.hidden(form),
            sampler=sampler,
            adjustments=self._adjustments(request),
            rule=rule,
            seed=secrets.randbits(64) if sampling.seed is None else sampling.seed,
            depths=self._depths(request, rule),
            copies=tuple(NgramIndex(tokens) for _ in range(choices if may_copy else 0)),
            constraints=constraints,
            min_tokens=limits.min_tokens,
            max_tokens=room if limits.max_tokens is None else min(limits.max_tokens, room),
            stop=limits.stop,
            end_tokens=end_tokens,
            logprobs=request.logprobs,
            prompt_logprobs=request.prompt_logprobs,
            kv=kv_format(request.kv, self.kv_quant, self.info, len(tokens)),
        )

    def count(self, request: ChatRequest) -> int:
        """Tokens of the prompt, whether they fit or not.

        Raises:
            InvalidRequest: The request cannot be served by this model.
            ContextOverflow: It is so far from fitting that nobody needs the exact count.
        """
        return len(self._read(request)[0])

    def _read(self, request: ChatRequest) -> tuple[list[int], AnswerForm]:
        form = AnswerForm()
        match request.prompt:
            case Conversation() as conversation:
                text = self.template.render(conversation)
                self._check_text(text, "messages")
                tokens = self.tokenizer.encode(text, add_special_tokens=False)
                form = self.template.form(text, conversation, request.calling)
            case RawText(text):
                self._check_text(text, "prompt")
                tokens = self.tokenizer.encode(text)
            case TokenIds(ids):
                tokens = list(ids)
                largest = len(self.tokenizer)
                if any(not 0 <= token < largest for token in tokens):
                    raise InvalidRequest(f"Token ids must be in [0, {largest}).", "prompt")
        if not tokens:
            raise InvalidRequest("The prompt is empty.", "prompt")
        return tokens, form

    def _echo(self, request: ChatRequest, tokens: list[int]) -> Echo:
        match request.prompt:
            case RawText(text):
                pass
            case _:
                text = self.tokenizer.decode(tokens)
        return Echo(text, tuple(self.tokenizer.decode([token]) for token in tokens))

    def _check_text(self, text: str, where: str) -> None:
        """Refuse what is not text, and what cannot fit, before tokenising megabytes of it."""
        try:
            text.encode()
        except UnicodeEncodeError:
            message = "The prompt holds half of a surrogate pair, which is not a character."
            raise InvalidRequest(message, where) from None
        at_least = len(text) // self.longest_token
        if at_least > self.info.context_length:
            raise ContextOverflow(at_least, self.info.context_length, where, exact=False)

    def _resolve(self, sampling: Sampling, name: str) -> Any:
        value = getattr(sampling, name)
        return getattr(self.defaults, name) if value is None else value

    def _sampler(self, sampling: Sampling) -> Sampler:
        names = [field.name for field in fields(Sampler)]
        return Sampler(**{name: self._resolve(sampling, name) for name in names})

    def _adjustments(self, request: ChatRequest) -> Adjustments:
        sampling = request.sampling
        self._check_ids("logit_bias", sampling.logit_bias)
        self._check_ids("stop_token_ids", request.limits.stop_token_ids)
        return Adjustments(
            logit_bias=tuple(sampling.logit_bias.items()),
            repetition_penalty=self._resolve(sampling, "repetition_penalty"),
            presence_penalty=self._resolve(sampling, "presence_penalty"),
            frequency_penalty=self._resolve(sampling, "frequency_penalty"),
            penalty_window=self._window(sampling.penalty_window),
        )

    def _window(self, asked: int | None) -> int | None:
        """A window that no text outgrows is none."""
        return None if asked is None or asked >= self.info.context_length else asked

    def _constraints(
        self, request: ChatRequest, form: AnswerForm, choices: int
    ) -> tuple[Constraint, ...]:
        template = self.template
        asked = (request.grammar, form, request.calling, template.dialect, template.marks)
        grammar = answer_grammar(*asked)
        if grammar is None:
            return ()
        factory = self.grammars()

        def compiles(rules: str) -> None:
            factory.make(Composed(f"start: calls\n{rules}", {}))

        try:
            first = factory.make(grammar)
        except InvalidRequest:
            # If one function is to blame, it is named, or made looser.
            again = answer_grammar(*asked, compiles)
            if again is None or again == grammar:
                raise
            first = factory.make(again)
        return (first, *(first.copy() for _ in range(choices - 1)))

    def _check_ids(self, name: str, ids: Iterable[int]) -> None:
        for token in ids:
            if not 0 <= token < self.vocabulary:
                text = f"{name} names token {token}; ids must be in [0, {self.vocabulary})."
                raise InvalidRequest(text, name)

    def _rule(self, request: ChatRequest, sampler: Sampler) -> RuleName:
        if sampler.greedy:
            return "greedy"
        asked = self.acceptance if request.acceptance == "auto" else request.acceptance
        if asked == "auto":
            return "rejection" if request.sampling.seed is None else "coupled"
        return asked

    def _depths(self, request: ChatRequest, rule: RuleName) -> range:
        depth, info = request.depth, self.info
        if depth is None:
            if info.adaptive_depth and not self._must_repeat(request, rule):
                return range(info.max_depth + 1)
            depth = info.default_depth
        if depth > info.max_depth:
            limit = f"depth must be at most {info.max_depth} here; got {depth}."
            raise InvalidRequest(f"{limit} MTP is {info.mtp_reason}.", "depth")
        return range(depth, depth + 1)

    def _may_copy(self, request: ChatRequest, rule: RuleName) -> bool:
        if request.copy_lane and not self.info.can_copy:
            text = "Drafts cannot be copied with this model: it cannot take them back."
            raise InvalidRequest(text, "copy_lane")
        if request.copy_lane is not None:
            return request.copy_lane
        # Asking for depth 0 is asking for plain decoding.
        asked_for_plain = request.depth == 0
        if asked_for_plain or self._must_repeat(request, rule):
            return False
        return self.copy_lane and self.info.can_copy

    def _must_repeat(self, request: ChatRequest, rule: RuleName) -> bool:
        """Whether where rounds begin shows in the answer, and the same answer is asked for.

        Under rejection the randomness belongs to rounds, so these must not depend on the clock.
        """
        return rule == "rejection" and request.sampling.seed is not None


def _where(prompt: Prompt) -> str:
    """The field of a request that holds its prompt."""
    return "messages" if isinstance(prompt, Conversation) else "prompt"
