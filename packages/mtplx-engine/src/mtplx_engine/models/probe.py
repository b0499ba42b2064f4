"""A short test of a head at load time, on the trunk it will draft for.

RMSNorm hides scale errors and a wrong hidden state still gives fluent-looking drafts, so nothing
but the acceptance rate would ever show that a head is wired wrongly. One pass over a page of prose
shows it at once.
"""

from collections.abc import Callable
from typing import Any

from mtplx_engine.backend import mx, read_float

from mtplx_engine.cache.rollback import roll_back
from mtplx_engine.cache.tape import Tape
from mtplx_engine.families.base import TrunkParts
from mtplx_engine.families.head import Head

_PROSE = (
    "The heart is a muscle about the size of a fist. It pumps blood through the body by way of"
    " the circulatory system, supplying oxygen and nutrients to the tissues and removing carbon"
    " dioxide and other wastes. In one day it beats about one hundred thousand times. The right"
    " side of the heart receives blood from the body and sends it to the lungs, where it picks up"
    " oxygen. The left side of the heart receives the blood from the lungs and sends it to the"
    " rest of the body. There are four chambers in the heart: two upper chambers, called the atria,"
    " and two lower chambers, called the ventricles."
)
_MOST_TOKENS = 160


class Probe:
    """One trunk pass over the sample, made when it is first needed and then reused.

    Attributes:
        parts: Of the trunk.
    """

    def __init__(
        self, parts: TrunkParts, tokenizer: Any, make_cache: Callable[[], list[Any]]
    ) -> None:
        self.parts = parts
        self._make_cache = make_cache
        ids = tokenizer.encode(_PROSE)[:_MOST_TOKENS]
        self._tokens = mx.array([ids])
        self._hidden = parts.body(self._tokens, make_cache())
        self._choices = mx.argmax(parts.unembed(self._hidden[0]), axis=-1)

    def agreement(self, head: Head) -> float:
        """How often the head's first guess is the trunk's own, from 0 to 1.

        Pair p guesses token p + 2, which the trunk chooses at position p + 1.
        """
        hidden = head.read(self._hidden[:, :-1], self._tokens[:, 1:], head.make_cache())
        guesses = mx.argmax(head.draft_logits(hidden[0]), axis=-1)
        if head.vocab is not None:
            guesses = head.vocab[guesses]
        return read_float(mx.mean(guesses == self._choices[1:]))

    def rollback_error(self, tape: Tape) -> float:
        """How far rolling back by tape is from never having fed the positions.

        Anything but a rounding error means that this mlx-lm computes recurrent layers in a way
        that the tape does not know.
        """
        fed, keep = 4, 2
        start, block = self._tokens[:, :8], self._tokens[:, 8 : 8 + fed]
        rolled, fresh = self._make_cache(), self._make_cache()
        self.parts.body(start, rolled)
        with tape.recording() as recording:
            self.parts.body(block, rolled)
        roll_back(rolled, recording, fed=fed, keep=keep)
        self.parts.body(start, fresh)
        self.parts.body(block[:, :keep], fresh)
        got, wanted = (self.parts.body(start, cache) for cache in (rolled, fresh))
        return read_float(mx.max(mx.abs(got - wanted)) / mx.max(mx.abs(wanted)))
