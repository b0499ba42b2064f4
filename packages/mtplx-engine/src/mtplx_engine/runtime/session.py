"""One request on the MLX thread: read the prompt, decode, settle tokens into text, end.

A session is stepped by the worker: one chunk of the prompt or one round at a time, so that several
take turns and a cancel takes effect within one step.
"""

import time

from mtplx_engine.backend import mx

from mtplx_engine.decode.decoder import Decoder
from mtplx_engine.decode.detokenize import Detokenizer
from mtplx_engine.decode.noise import Noise
from mtplx_engine.decode.plain import PlainDecoder
from mtplx_engine.decode.rules import Vocabulary, make_rule
from mtplx_engine.decode.sequence import Prefill, SequenceState
from mtplx_engine.decode.speculative import SpeculativeDecoder
from mtplx_engine.decode.stopping import StopMatcher
from mtplx_engine.events import FinishReason, PrefillProgress, Timings
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.runtime.mailbox import Ended, Mailbox, Piece
from mtplx_engine.runtime.prepare import Prepared

_CLEAR_EVERY = 256  # rounds; freed buffers of outgrown caches go back to the system


class Session:
    """A request being worked on. Every method runs on the MLX thread."""

    def __init__(
        self,
        model: LoadedModel,
        request: Prepared,
        mailbox: Mailbox,
        *,
        submitted: float,
        chunk: int,
    ) -> None:
        self._model = model
        self._request = request
        self._mailbox = mailbox
        self._submitted = submitted
        head = model.head if request.depth else None
        self._sequence = SequenceState(model, head)
        self._prefill: Prefill | None = Prefill(
            model, head, self._sequence, request.tokens, chunk=chunk
        )
        self._decoder = self._make_decoder()
        self._text = Detokenizer(
            lambda ids: str(model.tokenizer.decode(ids, skip_special_tokens=True))
        )
        self._stop = StopMatcher(request.stop)
        self._emitted = 0
        self._began = time.perf_counter()
        self._first_token = 0.0

    def _make_decoder(self) -> Decoder:
        model, request, head = self._model, self._request, self._model.head
        vocabulary = Vocabulary(model.vocabulary, head.vocab if head else None)
        rule = make_rule(request.rule, request.sampler, Noise(request.seed), vocabulary)
        if head is None or request.depth == 0:
            return PlainDecoder(model, rule, self._sequence)
        return SpeculativeDecoder(model, head, rule, self._sequence, request.depth)

    def step(self) -> bool:
        """Do one unit of work and return whether the request has ended.

        Raises:
            NonFiniteLogits: The model's output was not numbers.
        """
        if self._prefill is not None:
            return self._read(self._prefill)
        left = self._request.max_tokens - self._emitted
        ended = self._settle(self._decoder.step(most=left))
        if self._decoder.rounds % _CLEAR_EVERY == 0:
            mx.clear_cache()
        return ended

    def _read(self, prefill: Prefill) -> bool:
        logits = prefill.step()
        if logits is None:
            self._mailbox.put(PrefillProgress(self._sequence.length, prefill.total))
            return False
        token = self._decoder.first(logits, more=self._request.max_tokens > 1)
        self._prefill = None
        self._first_token = time.perf_counter()
        self._mailbox.put(PrefillProgress(prefill.total, prefill.total))
        return self._settle([token])

    def _settle(self, tokens: list[int]) -> bool:
        """Turn tokens into text up to the point where the answer ends; drop what comes after."""
        texts: list[str] = []
        reason: FinishReason | None = None
        for token in tokens:
            text, reason = self._settle_one(token)
            texts.append(text)
            if reason is not None:
                break
        self._mailbox.put(Piece(tuple(texts)))
        if reason is None:
            return False
        self._mailbox.put(self._ended(reason))
        return True

    def _settle_one(self, token: int) -> tuple[str, FinishReason | None]:
        self._emitted += 1
        if token in self._model.end_tokens:
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
            queue_s=self._began - self._submitted,
            prefill_s=self._first_token - self._began,
            decode_s=now - self._first_token,
        )
        return Ended(
            reason, self._stop.hit, len(self._request.tokens), self._decoder.report(), timings
        )
