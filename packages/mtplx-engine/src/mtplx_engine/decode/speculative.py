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

from dataclasses import dataclass, replace

from mtplx_engine.backend import mx, read_ints

from mtplx_engine.cache.rollback import cache_arrays, roll_back
from mtplx_engine.cache.tape import Recording
from mtplx_engine.decode.copying import NgramIndex
from mtplx_engine.decode.decoder import Drawn
from mtplx_engine.decode.experience import RoundCosts
from mtplx_engine.decode.law import Law
from mtplx_engine.decode.masking import Masking
from mtplx_engine.decode.planner import MOST_DRAFTS, Plan, Planner
from mtplx_engine.decode.rules import Draft, Rule, Verdict, tokens_of
from mtplx_engine.decode.sampling import check_finite, finite
from mtplx_engine.decode.scores import LazyScores, score
from mtplx_engine.decode.sequence import MOST_PENDING, SequenceState
from mtplx_engine.decode.tally import Mode, Tally
from mtplx_engine.events import Speculation
from mtplx_engine.models.loaded import LoadedModel, TrunkPass


@dataclass(frozen=True, slots=True)
class _Flight:
    """A round that was launched.

    Attributes:
        plan: What was drafted.
        landing: Whether the logits are sound, how many drafts stood, the k + 1 tokens.
        verified: The trunk's pass over k + 1 tokens.
        scores: Of the tokens.
        began: When it was launched.
    """

    plan: Plan
    landing: mx.array
    verified: TrunkPass
    scores: LazyScores | None
    began: float


@dataclass(frozen=True, slots=True)
class Drafting:
    """What the rounds of one answer are planned with.

    Attributes:
        planner: Chooses what each round drafts, and learns from it.
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
        drafting: What its rounds are planned with.
        top: How many likeliest tokens to list with each token's score; None: no scores.
    """

    def __init__(
        self,
        model: LoadedModel,
        rule: Rule,
        law: Law,
        sequence: SequenceState,
        drafting: Drafting,
        top: int | None = None,
    ) -> None:
        self._model = model
        self._head = model.head if sequence.head_cache else None
        self._rule = rule
        self._law = law
        self._sequence = sequence
        self._drafting = drafting
        self._top = top
        self._last = -1  # y
        self._flight: _Flight | None = None
        self._landed: tuple[Recording | None, int] | None = None  # how to undo more of it
        self._tally = Tally()

    @property
    def rounds(self) -> int:
        """Verify passes so far."""
        return self._tally.rounds

    def first(self, logits: mx.array, *, more: bool) -> Drawn:
        """See `Decoder.first`; nothing is prepared here for a token that may follow."""
        position = self._sequence.length
        if self._drafting.masking is not None:
            self._drafting.masking.begin(self._law, position)
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

    def settle(self, dropped: int) -> None:
        """See `Decoder.settle`."""
        if not dropped or self._landed is None:
            return
        # The last token of a round was not read, so one position fewer is to be undone.
        recording, fed = self._landed
        undo = dropped - 1
        roll_back(self._sequence.caches, recording, fed=fed, keep=fed - undo)
        self._sequence.length -= undo
        if self._head is not None:
            self._sequence.pending.drop(undo, dropped)

    def report(self) -> Speculation:
        """Statistics of the rounds so far."""
        without_head: Mode = "plain" if self._drafting.copies is None else "copy"
        mode = "mtp" if self._drafting.planner.may_draft else without_head
        return self._tally.report(mode, self._rule.name, depth=self._drafting.planner.depth)

    def _launch(self, room: int) -> _Flight:
        began = self._drafting.costs.begin()
        self._landed = None
        position = self._sequence.length + 1
        plan = self._plan(room, position)
        drafts = [Draft(mx.array(token)) for token in plan.given]
        if plan.lane == "mtp" and plan.drafts:
            drafts = self._draft(plan.drafts, position)
            plan = replace(plan, drafts=len(drafts))
        elif len(self._sequence.pending.tokens) >= MOST_PENDING:
            assert self._head is not None
            self._sequence.catch_up(self._head)
        block = mx.stack([mx.array(self._last), *tokens_of(drafts)])[None]
        verified = self._model.read(block, self._sequence.caches, recording=len(drafts) > 0)
        verdict = self._judge(verified.logits, drafts, position)
        # Rows after a rejected draft are of no consequence, so they may hold anything.
        judged = mx.arange(len(drafts) + 1) <= verdict.accepted
        ok = mx.all(finite(verified.logits) | ~judged)
        tokens = verdict.tokens.astype(mx.int32)
        header = [ok.astype(mx.int32), verdict.accepted.astype(mx.int32)]
        landing = mx.concatenate([mx.stack(header), tokens])
        scores = None if self._top is None else score(verified.logits, tokens, self._top)
        # The head's cache too: pairs read without a draft would otherwise pile up as a graph.
        pairs = cache_arrays(self._sequence.head_cache)
        mx.async_eval(landing, *pairs, *(scores.arrays() if scores else ()))
        return _Flight(plan, landing, verified, scores, began)

    def _plan(self, room: int, position: int) -> Plan:
        """What the grammar forces, if anything; else the planner's choice, where allowed."""
        masking, copies = self._drafting.masking, self._drafting.copies
        if masking is not None:
            masking.begin(self._law, position)
            if forced := masking.force(min(room, MOST_DRAFTS)):
                return Plan("forced", len(forced), tuple(forced))
        copy = copies.propose(MOST_DRAFTS) if copies else None
        if copy is not None and masking is not None and not masking.allows(copy.tokens[0]):
            copy = None
        plan = self._drafting.planner.plan(room, copy)
        if plan.given and masking is not None:
            kept = masking.admit(plan.given)
            return replace(plan, drafts=len(kept), given=tuple(kept))
        return plan

    def _judge(self, logits: mx.array, drafts: list[Draft], position: int) -> Verdict:
        if drafts:
            return self._rule.judge(logits, drafts, position)
        return Verdict(mx.array(0), self._rule.token(logits[0], position)[None])

    def _draft(self, depth: int, position: int) -> list[Draft]:
        """Commit what is known, then guess; leaves only committed pairs in the head's cache."""
        cache, masking = self._sequence.head_cache, self._drafting.masking
        assert self._head is not None
        state = self._sequence.catch_up(self._head)
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
        plan, verified = flight.plan, flight.verified
        self._drafting.costs.end(flight.began, plan.lane, plan.drafts)
        position, fed, keep = self._sequence.length + 1, len(tokens), accepted + 1
        if fed > 1:
            roll_back(self._sequence.caches, verified.recording, fed=fed, keep=keep)
        check_finite(ok, position)
        if self._head is not None and verified.hidden is not None:
            self._sequence.pending.add_states(verified.hidden[:, :keep])
        self._sequence.length += keep
        self._landed = verified.recording, keep
        self._drafting.planner.observe(plan, accepted)
        self._tally.count(plan, accepted)
        self._emit(tokens[:keep], accepted=accepted)
        return Drawn(tokens[:keep], flight.scores.read(keep) if flight.scores else [])

    def _emit(self, tokens: list[int], *, accepted: int) -> None:
        """Tell everybody who follows the answer what joined it."""
        self._last = tokens[-1]
        if self._head is not None:
            self._sequence.pending.tokens += tokens
        self._law.extend(mx.array(tokens))
        if self._drafting.copies is not None:
            self._drafting.copies.extend(tokens)
        if self._drafting.masking is not None:
            self._drafting.masking.settle(tokens, accepted)
