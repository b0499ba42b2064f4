"""Decoding one token at a time: for models without a head, and for depth 0."""

from mtplx_engine.backend import mx, read_ints

from mtplx_engine.decode.rules import Rule
from mtplx_engine.decode.sampling import check_finite, finite
from mtplx_engine.decode.sequence import SequenceState
from mtplx_engine.events import Speculation
from mtplx_engine.models.loaded import LoadedModel


class PlainDecoder:
    """Keeps one step in flight: the device works on the next token while this one is handed out.

    The caches are therefore one position ahead of what was handed out, unless the last step said
    that nothing follows.
    """

    def __init__(self, model: LoadedModel, rule: Rule, sequence: SequenceState) -> None:
        self._model = model
        self._rule = rule
        self._sequence = sequence
        self._flight: mx.array | None = None
        self.rounds = 0

    def first(self, logits: mx.array, *, more: bool) -> int:
        """Draw the first token from the prompt's (V,) logits.

        Args:
            logits: Not yet evaluated.
            more: Whether another token will be asked for.

        Raises:
            NonFiniteLogits: The logits were not numbers.
        """
        self._launch(logits)
        return self._land(more=more)

    def step(self, *, most: int) -> list[int]:
        """The next token.

        Args:
            most: How many tokens may still be emitted, this one included; at least one.

        Raises:
            NonFiniteLogits: The logits were not numbers.
        """
        self.rounds += 1
        return [self._land(more=most > 1)]

    def report(self) -> Speculation:
        """Statistics: nothing was drafted."""
        return Speculation("plain", 0, None, self.rounds, (), ())

    def _launch(self, logits: mx.array) -> None:
        token = self._rule.token(logits, self._sequence.length)
        self._flight = mx.stack([token, finite(logits).astype(token.dtype)])
        mx.async_eval(self._flight)

    def _land(self, *, more: bool) -> int:
        arrived, position = self._flight, self._sequence.length
        assert arrived is not None
        self._flight = None
        if more:
            self._sequence.length += 1
            logits = self._model.logits(arrived[None, :1], self._sequence.caches)
            self._launch(logits[0, -1])
        token, ok = read_ints(arrived)
        check_finite(ok, position)
        return token
