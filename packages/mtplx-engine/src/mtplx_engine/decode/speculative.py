"""Rounds of commit, draft, verify, accept and roll back.

One round, with n tokens in the trunk's caches and the token y at position n not yet read:

1. commit: the head reads the pairs of the last round's positions, built from the trunk's own
   hidden states; its last output is also the first draft step;
2. draft: k tokens, each from the head's output for the one before; then these pairs leave the
   head's cache again, because they were built from guesses;
3. verify: the trunk reads y and the k drafts in one pass and gives the law at each position;
4. accept: the rule keeps j drafts and adds one token;
5. roll back: the trunk keeps 1 + j of the 1 + k positions.

Steps 1 to 4 are one lazy graph with one synchronisation at its end.
"""

from mtplx_engine.backend import mx, read_ints

from mtplx_engine.cache.rollback import roll_back
from mtplx_engine.decode.rules import Draft, Rule
from mtplx_engine.decode.sampling import check_finite, finite
from mtplx_engine.decode.sequence import SequenceState
from mtplx_engine.events import Speculation
from mtplx_engine.families.head import Head
from mtplx_engine.models.loaded import LoadedModel


class SpeculativeDecoder:
    """Decodes one sequence with its model's head.

    Attributes:
        rounds: Verify passes so far.
        drafted: Drafts judged at position 1, 2, ... of a round. A draft after a rejected one is
            not judged.
        accepted: Drafts accepted at position 1, 2, ... of a round.
    """

    def __init__(
        self, model: LoadedModel, head: Head, rule: Rule, sequence: SequenceState, depth: int
    ) -> None:
        self._head = head
        self._tape = model.tape
        self._rule = rule
        self._sequence = sequence
        self._depth = depth
        self._fresh: list[int] = []  # tokens whose pairs the head has not read; the last is y
        self.rounds = 0
        self.drafted = [0] * depth
        self.accepted = [0] * depth

    def first(self, logits: mx.array, *, more: bool) -> int:
        """Draw the first token from the prompt's (V,) logits.

        Args:
            logits: Not yet evaluated.
            more: Whether another token will be asked for; nothing is prepared here either way.

        Raises:
            NonFiniteLogits: The logits were not numbers.
        """
        position = self._sequence.length
        token = self._rule.token(logits, position)
        landed = mx.stack([token, finite(logits).astype(token.dtype)])
        mx.eval(landed, self._sequence.arrays())
        value, ok = read_ints(landed)
        check_finite(ok, position)
        self._fresh = [value]
        return value

    def step(self, *, most: int) -> list[int]:
        """Run one round and return the tokens it emits, at least one.

        Args:
            most: How many tokens may still be emitted; at least one.

        Raises:
            NonFiniteLogits: The logits were not numbers.
        """
        depth = min(self._depth, most - 1)
        position = self._sequence.length + 1
        drafts = self._draft(depth, position)
        block = mx.stack([mx.array(self._fresh[-1]), *(draft.token for draft in drafts)])[None]
        hidden = self._verify(block, recording=depth > 0)
        logits = self._head.trunk.unembed(hidden[0])
        accepted, tokens = self._choose(logits, drafts, position)
        # Rows after a rejected draft are of no consequence, so they may hold anything.
        judged = mx.arange(depth + 1) <= accepted
        ok = mx.all(finite(logits) | ~judged)
        header = [ok.astype(mx.int32), accepted.astype(mx.int32)]
        landed = mx.concatenate([mx.stack(header), tokens])
        mx.eval(landed)
        return self._settle(read_ints(landed), hidden, position)

    def report(self) -> Speculation:
        """Statistics of the rounds so far."""
        drafted, accepted = tuple(self.drafted), tuple(self.accepted)
        return Speculation("mtp", self._depth, self._rule.name, self.rounds, drafted, accepted)

    def _draft(self, depth: int, position: int) -> list[Draft]:
        """Commit what is known, then guess; leaves only committed pairs in the head's cache."""
        cache = self._sequence.head_cache
        assert self._sequence.hidden is not None
        state = self._head.read(self._sequence.hidden, mx.array([self._fresh]), cache)[:, -1:]
        committed = cache[0].offset
        drafts: list[Draft] = []
        for index in range(depth):
            if index:
                state = self._head.read(state, drafts[-1].token[None, None], cache)
            logits = self._head.draft_logits(state[0, 0])
            drafts.append(self._rule.draft(logits, position + index))
        for layer in cache:
            layer.trim(layer.offset - committed)
        return drafts

    def _verify(self, block: mx.array, *, recording: bool) -> mx.array:
        if self._tape is None or not recording:
            return self._head.trunk.body(block, self._sequence.caches)
        with self._tape:
            return self._head.trunk.body(block, self._sequence.caches)

    def _choose(
        self, logits: mx.array, drafts: list[Draft], position: int
    ) -> tuple[mx.array, mx.array]:
        if not drafts:
            return mx.array(0), self._rule.token(logits[0], position)[None].astype(mx.int32)
        verdict = self._rule.judge(logits, drafts, position)
        return verdict.accepted, verdict.tokens.astype(mx.int32)

    def _settle(self, landed: list[int], hidden: mx.array, position: int) -> list[int]:
        ok, accepted, *tokens = landed
        fed = len(tokens)
        keep = accepted + 1
        if fed > 1:
            roll_back(self._sequence.caches, self._tape, fed=fed, keep=keep)
        check_finite(ok, position)
        self._sequence.hidden = hidden[:, :keep]
        self._sequence.length += keep
        self._fresh = tokens[:keep]
        self._count(judged=min(keep, fed - 1), accepted=accepted)
        return self._fresh

    def _count(self, *, judged: int, accepted: int) -> None:
        self.rounds += 1
        for index in range(judged):
            self.drafted[index] += 1
        for index in range(accepted):
            self.accepted[index] += 1
