"""Decoding one token at a time, where nothing can be drafted and nothing masked."""

from mtplx_engine.backend import mx, read_ints

from mtplx_engine.cache.rollback import cache_arrays
from mtplx_engine.decode.decoder import Drawn
from mtplx_engine.decode.law import Law
from mtplx_engine.decode.rules import Rule
from mtplx_engine.decode.sampling import check_finite, finite
from mtplx_engine.decode.scores import LazyScores, score
from mtplx_engine.decode.sequence import MOST_PENDING, SequenceState
from mtplx_engine.events import Speculation
from mtplx_engine.models.loaded import LoadedModel


class PlainDecoder:
    """Keeps one step in flight: the device works on the next token while this one is handed out.

    The caches are therefore one position ahead of what was handed out, unless the last step said
    that nothing follows.

    Args:
        model: The model.
        rule: How tokens are chosen.
        law: Of the answer.
        sequence: Where the prompt was read.
        top: How many likeliest tokens to list with each token's score; None: no scores.
    """

    def __init__(
        self, model: LoadedModel, rule: Rule, law: Law, sequence: SequenceState, top: int | None
    ) -> None:
        self._model = model
        self._rule = rule
        self._law = law
        self._sequence = sequence
        self._top = top
        self._head = model.head if sequence.head_cache else None
        self._flight: tuple[mx.array, LazyScores | None] | None = None
        self.rounds = 0

    def first(self, logits: mx.array, *, more: bool) -> Drawn:
        """See `Decoder.first`."""
        self._launch(logits)
        return self._land(more=more)

    def ahead(self, *, most: int) -> None:
        """Nothing: the next step is in flight already."""

    def step(self, *, most: int) -> Drawn:
        """See `Decoder.step`."""
        self.rounds += 1
        return self._land(more=most > 1)

    def report(self) -> Speculation:
        """Statistics: nothing was drafted."""
        return Speculation("plain", 0, None, self.rounds, (), ())

    def settle(self, dropped: int) -> None:
        """See `Decoder.settle`: what is in flight follows the last token, so it was read."""
        assert dropped == 0
        self._flight = None

    def _follow(self, token: int) -> None:
        """Keep the head up with the text, for a later turn that drafts."""
        assert self._head is not None
        pending = self._sequence.pending
        pending.tokens.append(token)
        if pending.hidden is not None and len(pending.tokens) >= MOST_PENDING:
            self._sequence.catch_up(self._head)
            mx.async_eval(cache_arrays(self._sequence.head_cache))

    def _launch(self, logits: mx.array) -> None:
        token = self._rule.token(logits, self._sequence.length)
        self._law.extend(token[None])
        scores = None if self._top is None else score(logits[None], token[None], self._top)
        landing = mx.stack([token, finite(logits).astype(token.dtype)])
        mx.async_eval(landing, *(scores.arrays() if scores else ()))
        self._flight = landing, scores

    def _land(self, *, more: bool) -> Drawn:
        assert self._flight is not None
        (landing, scores), position = self._flight, self._sequence.length
        self._flight = None
        if more:
            self._sequence.length += 1
            step = self._model.read(landing[None, :1], self._sequence.caches)
            if self._head is not None and step.hidden is not None:
                self._sequence.pending.add_states(step.hidden)
            self._launch(step.logits[-1])
        token, ok = read_ints(landing)
        check_finite(ok, position)
        if self._head is not None:
            self._follow(token)
        return Drawn([token], scores.read(1) if scores else [])
