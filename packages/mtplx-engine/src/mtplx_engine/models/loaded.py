"""A model that is ready to decode. Everything here belongs to the MLX thread."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from mtplx_engine.backend import mx, nn

from mlx_lm.models.cache import make_prompt_cache

from mtplx_engine.cache.tape import Recording, Tape
from mtplx_engine.caching import KVFormat
from mtplx_engine.chat.template import ChatTemplate
from mtplx_engine.families.base import TrunkParts
from mtplx_engine.families.head import Head
from mtplx_engine.info import ModelInfo
from mtplx_engine.models.quantisable import quantise
from mtplx_engine.request import Sampling


@dataclass(frozen=True, slots=True)
class TrunkPass:
    """What a pass of the trunk gives.

    Attributes:
        hidden: (1, S, H) states after the final norm; None where they cannot be had.
        logits: (S, V).
        recording: For taking positions back; None where that needs none.
    """

    hidden: mx.array | None
    logits: mx.array
    recording: Recording | None = None


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A trunk, its tokenizer and, where there is one, its head.

    Attributes:
        model: mlx-lm's module.
        tokenizer: mlx-lm's tokenizer wrapper.
        template: Its chat template.
        parts: Handles into the trunk; None for a model type that no family describes.
        head: The MTP head; None when nothing but copies can be drafted.
        tape: Recorder of the recurrent layers; None without such layers.
        can_roll_back: Whether drafts can be taken back, so whether anything can be drafted.
        end_tokens: Ids that end an answer.
        defaults: Sampling for what a request leaves open; no field is None but `seed` and
            `penalty_window`.
        vocabulary: Number of logits per position.
        info: The description for callers.
    """

    model: nn.Module
    tokenizer: Any
    template: ChatTemplate
    parts: TrunkParts | None
    head: Head | None
    tape: Tape | None
    can_roll_back: bool
    end_tokens: frozenset[int]
    defaults: Sampling
    vocabulary: int
    info: ModelInfo

    def make_cache(self, kv: KVFormat | None = None) -> list[Any]:
        """Fresh trunk caches for one sequence, which keep keys and values in this format."""
        caches: list[Any] = make_prompt_cache(self.model)
        return caches if kv is None else quantise(caches, kv)

    def read(self, tokens: mx.array, caches: list[Any], *, recording: bool = False) -> TrunkPass:
        """Read (1, S) token ids; the caches grow by S positions.

        Args:
            tokens: Ids.
            caches: Of one sequence.
            recording: Whether some of the positions may be taken back.
        """
        if self.parts is None:
            return TrunkPass(None, self.model(tokens, cache=caches)[0])
        with self.tape.recording() if recording and self.tape else nullcontext() as recorded:
            hidden = self.parts.body(tokens, caches)
        return TrunkPass(hidden, self.parts.unembed(hidden[0]), recorded)
