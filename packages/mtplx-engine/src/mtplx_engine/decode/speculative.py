"""Rounds of commit, draft, verify, accept and roll back.

One round, with n tokens in the trunk's caches and the token y at position n not yet read:

1. commit: the head reads the pairs it has not read, built from the trunk's own hidden states; its
   last output is also the first draft step;
2. draft: k tokens, each from the head's output for the one before; then these pairs leave the
   head's cache again, because they were built from guesses. Or k tokens are given: copied from
   earlier text, or forced by a grammar. Then the head does nothing and its pairs wait;
3. verify: the trunk reads y and the k drafts in one pass and gives the law at each position;
4. accept: the rule keeps j drafts and adds one token;
5. roll back: the trunk keeps 1 + j of the 1 + k positions.

Steps 1 to 4 are one lazy graph with one synchronisation at its end. Only a grammar needs more: its
masks are made on the host, so each draft is read before the next one is masked.
"""

from dataclasses import dataclass

from mtplx_engine.backend import mx, read_ints

from mtplx_engine.cache.rollback import cache_arrays, roll_back
from mtplx_engine.decode.copying import NgramIndex
from mtplx_engine.decode.decoder import Drawn
from mtplx_engine.decode.experience import RoundCosts
from mtplx_engine.decode.law import Law
from mtplx_engine.decode.masking import Masking
from mtplx_engine.decode.planner import LONGEST_COPY, Plan, Planner
from mtplx_engine.decode.rules import Draft, Rule, Verdict, tokens_of
from mtplx_engine.decode.sampling import check_finite, finite
from mtplx_engine.decode.scores import LazyScores, score
from mtplx_engine.decode.sequence import SequenceState
from mtplx_engine.decode.tally import Tally
from mtplx_engine.events import Speculation
from mtplx_engine.models.loaded import LoadedModel, Reading

# Pairs that wait for the head; more are read even though nothing is drafted, so that a draft after
# a long stretch without one does not cost a prefill.
_MOST_WAITING = 32


@dataclass(frozen=True, slots=True)
class _Flight:
    """A round that was launched.

    Attributes:
        plan: What was drafted.
        forced: Whether a grammar left no choice about the drafts.
        landing: Whether the logits are sound, how many drafts stood, the k + 1 tokens.
        reading: The trunk's pass over k + 1 tokens.
        scores: Of the tokens.
        began: When it was launched.
    """

    plan: Plan
    forced: bool
    landing: mx.array
    reading: Reading
    scores: LazyScores | None
    began: float


@dataclass(frozen=True, slots=True)
class Lanes:
    """Where drafts come from, and what may be emitted.

    Attributes:
        planner: Chooses for each round.
        costs: Learns what a round took.
        copies: Earlier text that may recur; None: never copy.
        masking: The request's grammar; None: everything may be emitted.
    """

    planner: Planner
    costs: RoundCosts
    copies: NgramIndex | None = None
    masking: Masking | None = None


class SpeculativeDecoder:
    """Decodes one sequence in rounds.

    Args:
        model: The model. Its head drafts if the sequence has a cache for it.
        rule: How drafts are judged.
        law: Of the answer.
        sequence: Where the prompt was read.
        lanes: Where drafts come from.
        top: How many likeliest tokens to list with each token's score; None: no scores.
    """

    def __init__(
        self,
        model: LoadedModel,
        rule: Rule,
        law: Law,
        sequence: SequenceState,
        lanes: Lanes,
        top: int | None = None,
    ) -> None:
        self._model = model
        self._head = model.head if sequence.head_cache else None
        self._rule = rule
        self._law = law
        self._sequence = sequence
        self._lanes = lanes
        self._top = top
        self._last = -1  # y
        self._waiting: list[int] = []  # tokens whose pairs the head has not read; the last is y
        self._flight: _Flight | None = None
        self._tally = Tally()

    @property
    def rounds(self) -> int:
        """Verify passes so far."""
        return self._tally.rounds

    def first(self, logits: mx.array, *, more: bool) -> Drawn:
        """See `Decoder.first`; nothing is prepared here for a token that may follow."""
        position = self._sequence.length
        if self._lanes.masking is not None:
            self._lanes.masking.begin(self._law, position)
        token = self._rule.token(logits, position)[None]
        landing = mx.concatenate([token, finite(logits)[None].astype(token.dtype)])
        scores = None if self._top is None else score(logits[None], token, self._top)
        mx.eval(landing, self._sequence.arrays(), *(scores.arrays() if scores else ()))
        value, ok = read_ints(landing)
        check_finite(ok, position)
        self._emit([value], accepted=0)
        return Drawn([value], scores.read(1) if scores else [])

    def ahead(self, *, most: int) -> None:
        """See `Decoder.ahead`."""
        self._flight = self._launch(most - 1)

    def step(self, *, most: int) -> Drawn:
        """See `Decoder.step`."""
        flight = self._flight or self._launch(most - 1)
        self._flight = None
        return self._land(flight)

    def report(self) -> Speculation:
        """Statistics of the rounds so far."""
        depth = self._lanes.planner.depth
        return self._tally.report(self._rule.name, depth=depth, head=self._head is not None)

    def _launch(self, room: int) -> _Flight:
        began = self._lanes.costs.begin()
        position = self._sequence.length + 1
        given, plan = self._given(room, position)
        drafts = [Draft(mx.array(token)) for token in given]
        if not given and plan.drafts:
            drafts = self._draft(plan.drafts, position)
            plan = Plan(plan.lane, len(drafts))
        elif len(self._waiting) >= _MOST_WAITING:
            self._commit()
        block = mx.stack([mx.array(self._last), *tokens_of(drafts)])[None]
        reading = self._model.read(block, self._sequence.caches, recording=len(drafts) > 0)
        verdict = self._judge(reading.logits, drafts, position)
        # Rows after a rejected draft are of no consequence, so they may hold anything.
        judged = mx.arange(len(drafts) + 1) <= verdict.accepted
        ok = mx.all(finite(reading.logits) | ~judged)
        tokens = verdict.tokens.astype(mx.int32)
        header = [ok.astype(mx.int32), verdict.accepted.astype(mx.int32)]
        landing = mx.concatenate([mx.stack(header), tokens])
        scores = None if self._top is None else score(reading.logits, tokens, self._top)
        # The head's cache too: pairs read without a draft would otherwise pile up as a graph.
        pairs = cache_arrays(self._sequence.head_cache)
        mx.async_eval(landing, *pairs, *(scores.arrays() if scores else ()))
        forced = bool(given) and not plan.copied
        return _Flight(plan, forced, landing, reading, scores, began)

    def _given(self, room: int, position: int) -> tuple[list[int], Plan]:
        """Tokens that are drafted without the head, and the plan."""
        masking, copies = self._lanes.masking, self._lanes.copies
        if masking is not None:
            masking.begin(self._law, position)
            if forced := masking.force(room):
                return forced, Plan("copy", len(forced))
        copy = copies.propose(LONGEST_COPY) if copies else None
        if copy is not None and masking is not None and not masking.allows(copy.tokens[0]):
            copy = None
        plan = self._lanes.planner.plan(room, copy)
        if plan.copied:
            kept = list(plan.copied) if masking is None else masking.admit(plan.copied)
            return kept, Plan("copy", len(kept), tuple(kept), plan.matched)
        return [], plan

    def _judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        if drafts:
            return self._rule.judge(logits, drafts, position)
        return Verdict(mx.array(0), self._rule.token(logits[0], position)[None])

    def _commit(self) -> mx.array:
        """Let the head read the pairs that wait; return its last (1, 1, H) output."""
        assert self._head is not None
        assert self._sequence.hidden is not None
        hidden, following = self._sequence.hidden, mx.array([self._waiting])
        self._sequence.hidden, self._waiting = None, []
        return self._head.read(hidden, following, self._sequence.head_cache)[:, -1:]

    def _draft(self, depth: int, position: int) -> list[Draft]:
        """Commit what is known, then guess; leaves only committed pairs in the head's cache."""
        cache, masking = self._sequence.head_cache, self._lanes.masking
        state = self._commit()
        assert self._head is not None
        committed = cache[0].offset
        drafts: list[Draft] = []
        while len(drafts) < depth and (masking is None or masking.open_to_head):
            if drafts:
                state = self._head.read(state, drafts[-1].token[None, None], cache)
            logits = self._head.draft_logits(state[0, 0])
            at = position + len(drafts)
            drafts.append(self._rule.draft(logits, at, tokens_of(drafts)))
            if masking is not None:
                masking.follow(read_ints(drafts[-1].token[None])[0])
        for layer in cache:
            layer.trim(layer.offset - committed)
        return drafts

    def _land(self, flight: _Flight) -> Drawn:
        ok, accepted, *tokens = read_ints(flight.landing)
        self._lanes.costs.end(flight.began, flight.plan.lane, flight.plan.drafts)
        position, fed, keep = self._sequence.length + 1, len(tokens), accepted + 1
        if fed > 1:
            recording = flight.reading.recording
            roll_back(self._sequence.caches, recording, fed=fed, keep=keep)
        check_finite(ok, position)
        if self._head is not None and flight.reading.hidden is not None:
            self._sequence.wait(flight.reading.hidden[:, :keep])
        self._sequence.length += keep
        if flight.forced:
            self._tally.force(len(tokens) - 1)
        else:
            self._lanes.planner.observe(flight.plan, accepted)
            self._tally.count(flight.plan, accepted)
        self._emit(tokens[:keep], accepted=accepted)
        return Drawn(tokens[:keep], flight.scores.read(keep) if flight.scores else [])

    def _emit(self, tokens: list[int], *, accepted: int) -> None:
        """Tell everybody who follows the answer what joined it."""
        self._last = tokens[-1]
        if self._head is not None:
            self._waiting += tokens
        self._law.extend(mx.array(tokens))
        if self._lanes.copies is not None:
            self._lanes.copies.extend(tokens)
        if self._lanes.masking is not None:
            self._lanes.masking.settle(tokens, accepted)
