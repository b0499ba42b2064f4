"""One answer on the MLX thread: draw tokens, settle them into text, end.

An answer is stepped by the worker one round at a time, so that several take turns and a cancel
takes effect within one round.
"""

import copy
import time

from mtplx_engine.backend import mx

import numpy as np

from mtplx_engine.decode.adjust import Adjuster
from mtplx_engine.decode.decoder import Decoder, Drawn
from mtplx_engine.decode.detokenize import Detokenizer
from mtplx_engine.decode.law import Law, Vocabulary
from mtplx_engine.decode.masking import Masking
from mtplx_engine.decode.noise import Noise
from mtplx_engine.decode.plain import PlainDecoder
from mtplx_engine.decode.planner import Planner
from mtplx_engine.decode.rules import make_rule
from mtplx_engine.decode.sequence import SequenceState
from mtplx_engine.decode.speculative import Drafting, SpeculativeDecoder
from mtplx_engine.decode.stopping import StopMatcher
from mtplx_engine.events import FinishReason, Timings
from mtplx_engine.runtime.mailbox import Ended, Piece
from mtplx_engine.runtime.memory import PeakMeter
from mtplx_engine.runtime.prepare import Prepared
from mtplx_engine.runtime.resources import Resources
from mtplx_engine.runtime.turn import Seat, Turn

_CLEAR_EVERY = 256  # rounds; freed buffers of outgrown caches go back to the system


class Answer:
    """An answer being drawn. Every method runs on the MLX thread.

    Args:
        shared: The model and what is known of it.
        request: What to do.
        seat: Who reads it.
        sequence: Where the prompt was read; this answer's own.
        logits: (V,), the last output of the prompt, not yet evaluated.
        choice: Which of the request's answers it is.
        began: `time.perf_counter()` when the prompt began to be read.
        queue_s: Seconds that the request had waited by then.
        meter: Of the memory that reading the prompt took.
    """

    def __init__(
        self,
        shared: Resources,
        request: Prepared,
        seat: Seat,
        sequence: SequenceState,
        logits: mx.array,
        *,
        choice: int,
        began: float,
        queue_s: float,
        meter: PeakMeter,
    ) -> None:
        self.seats = (seat,)
        self._request = request
        self._mailbox = seat.mailbox
        self._logits: mx.array | None = logits
        self._decoder = _make_decoder(shared, request, sequence, choice)
        self._text = Detokenizer(shared.model.tokenizer.decode, request.hidden)
        self._stop = StopMatcher(request.stop)
        self._likelihoods = shared.likelihoods
        self._emitted = 0
        self._began = began
        self._queue_s = queue_s
        self._first_token = 0.0
        self._meter = copy.copy(meter)

    def step(self) -> tuple[Turn, ...]:
        """See `Turn.step`."""
        with self._meter:
            drawn = self._draw()
            texts, reason = self._settle(drawn.tokens)
            if reason is None:
                # From here on the device works while the tokens are handed out.
                self._decoder.ahead(most=self._request.max_tokens - self._emitted)
        scores = self._likelihoods.of(drawn.scores[: len(texts)])
        self._mailbox.put(Piece(texts, scores))
        if reason is None:
            return (self,)
        self._mailbox.put(self._ended(reason))
        self.seats[0].on_end()
        return ()

    def _draw(self) -> Drawn:
        left = self._request.max_tokens - self._emitted
        if self._logits is not None:
            logits, self._logits = self._logits, None
            drawn = self._decoder.first(logits, more=left > 1)
            self._first_token = time.perf_counter()
            return drawn
        drawn = self._decoder.step(most=left)
        if self._decoder.rounds % _CLEAR_EVERY == 0:
            mx.clear_cache()
        return drawn

    def _settle(self, tokens: list[int]) -> tuple[tuple[str, ...], FinishReason | None]:
        """Turn tokens into text up to the point where the answer ends; drop what comes after."""
        texts: list[str] = []
        for token in tokens:
            text, reason = self._settle_one(token)
            texts.append(text)
            if reason is not None:
                return tuple(texts), reason
        return tuple(texts), None

    def _settle_one(self, token: int) -> tuple[str, FinishReason | None]:
        self._emitted += 1
        if token in self._request.end_tokens:
            return self._last_text(), "stop"
        text = self._stop.feed(self._text.add(token))
        if self._stop.hit is None and self._emitted == self._request.max_tokens:
            text += self._last_text()
            # What was held back may have completed a stop string just now.
            return text, "stop" if self._stop.hit is not None else "length"
        return text, "stop" if self._stop.hit is not None else None

    def _last_text(self) -> str:
        """What the detokenizer and the stop matcher still hold, now that no token follows."""
        text = self._stop.feed(self._text.close())
        return text if self._stop.hit is not None else text + self._stop.close()

    def _ended(self, reason: FinishReason) -> Ended:
        now = time.perf_counter()
        timings = Timings(
            queue_s=self._queue_s,
            prefill_s=self._first_token - self._began,
            decode_s=now - self._first_token,
        )
        prompt, how = len(self._request.tokens), self._decoder.report()
        kv = self._request.kv
        return Ended(reason, self._stop.hit, prompt, how, timings, self._meter.bytes, kv=kv)


def _make_decoder(
    shared: Resources,
    request: Prepared,
    sequence: SequenceState,
    choice: int,
) -> Decoder:
    model, experience = shared.model, shared.experience
    size, drafted = model.vocabulary, model.head.vocab if model.head else None
    asked = request.adjustments
    law = Law(
        request.sampler,
        Noise(request.seed, choice),
        Vocabulary(size, drafted),
        adjuster=None if asked.none else Adjuster(asked, size, request.tokens),
        end_tokens=sorted(request.end_tokens),
        ends_from=len(request.tokens) + request.min_tokens,
    )
    rule = make_rule(request.rule, law)
    nothing_to_draft = not request.depths[-1] and not request.copies
    if nothing_to_draft and not request.constraints:
        return PlainDecoder(model, rule, law, sequence, request.logprobs)
    constraint = request.constraints[choice] if request.constraints else None
    columns = None if drafted is None else np.array(drafted)
    drafting = Drafting(
        Planner(experience, request.depths),
        experience.costs,
        request.copies[choice] if request.copies else None,
        Masking(constraint, request.end_tokens, columns) if constraint else None,
    )
    return SpeculativeDecoder(model, rule, law, sequence, drafting, request.logprobs)
