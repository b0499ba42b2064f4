"""Reading the prompt of a request, for one answer or several."""

import time
from dataclasses import replace

from mtplx_engine.backend import mx

from mtplx_engine.decode.sequence import Prefill, SequenceState
from mtplx_engine.events import PrefillProgress, PromptScored, Speculation, Timings
from mtplx_engine.runtime.answer import Answer
from mtplx_engine.runtime.mailbox import Ended, Item
from mtplx_engine.runtime.memory import PeakMeter
from mtplx_engine.runtime.prepare import Prepared
from mtplx_engine.runtime.resources import Resources
from mtplx_engine.runtime.turn import Seat, Turn


class Reading:
    """A prompt being read. Every method runs on the MLX thread.

    Args:
        shared: The model and what is known of it.
        request: What to do.
        seats: One for each answer wanted.
        submitted: `time.perf_counter()` at submission.
    """

    def __init__(
        self,
        shared: Resources,
        request: Prepared,
        seats: tuple[Seat, ...],
        *,
        submitted: float,
    ) -> None:
        self.seats = seats
        self._shared = shared
        self._request = request
        self._submitted = submitted
        self._began = time.perf_counter()
        self._meter = PeakMeter()
        model = shared.model
        head = model.head if request.depths[-1] else None
        self._sequence = SequenceState(model, head, request.kv)
        self._prefill = Prefill(
            model,
            head,
            self._sequence,
            request.tokens,
            chunk=shared.chunk,
            top=request.prompt_logprobs,
        )

    def step(self) -> tuple[Turn, ...]:
        """See `Turn.step`."""
        with self._meter:
            logits = self._prefill.step()
        if scores := self._prefill.scores:
            self._tell(PromptScored(self._shared.likelihoods.of(scores)))
        if logits is None:
            self._tell(PrefillProgress(self._sequence.length, self._prefill.total))
            return (self,)
        # Scoring has waited for everything already; nothing is drawn.
        if self._request.max_tokens == 0:
            return self._end()
        waiting = [(i, seat) for i, seat in enumerate(self.seats) if not seat.left]
        for seat in self.seats:
            if seat.left:
                seat.dismiss()
        self._tell(PrefillProgress(self._prefill.total, self._prefill.total))
        return tuple(self._answer(i, seat, logits, len(waiting)) for i, seat in waiting)

    def _answer(self, choice: int, seat: Seat, logits: mx.array, count: int) -> Answer:
        sequence = self._sequence if count == 1 else self._sequence.fork()
        return Answer(
            self._shared,
            self._request,
            seat,
            sequence,
            logits,
            choice=choice,
            began=self._began,
            queue_s=self._began - self._submitted,
            meter=self._meter,
        )

    def _end(self) -> tuple[Turn, ...]:
        now = time.perf_counter()
        timings = Timings(self._began - self._submitted, now - self._began, 0.0)
        prompt = len(self._request.tokens)
        for seat in self.seats:
            nothing = Speculation("plain", 0, None, 0, (), ())
            ended = Ended("length", None, prompt, nothing, timings, self._meter.bytes)
            seat.mailbox.put(replace(ended, kv=self._request.kv))
            seat.on_end()
        return ()

    def _tell(self, item: Item) -> None:
        for seat in self.seats:
            seat.mailbox.put(item)
