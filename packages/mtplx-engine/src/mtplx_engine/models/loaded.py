"""A model that is ready to decode. Everything here belongs to the MLX thread."""

from dataclasses import dataclass
from typing import Any

from mtplx_engine.backend import mx, nn

from mlx_lm.models.cache import make_prompt_cache

from mtplx_engine.cache.tape import Tape
from mtplx_engine.families.head import Head
from mtplx_engine.info import ModelInfo
from mtplx_engine.request import Sampling


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A trunk, its tokenizer and, where there is one, its head.

    Attributes:
        model: mlx-lm's module.
        tokenizer: mlx-lm's tokenizer wrapper.
        head: The MTP head, or None when this model decodes plainly.
        tape: Recorder of the recurrent layers; None without a head or without such layers.
        end_tokens: Ids that end an answer.
        defaults: Sampling for what a request leaves open; no field is None but `seed`.
        vocabulary: Number of logits per position.
        info: The description for callers.
    """

    model: nn.Module
    tokenizer: Any
    head: Head | None
    tape: Tape | None
    end_tokens: frozenset[int]
    defaults: Sampling
    vocabulary: int
    info: ModelInfo

    def make_cache(self) -> list[Any]:
        """Fresh trunk caches for one sequence."""
        caches: list[Any] = make_prompt_cache(self.model)
        return caches

    def logits(self, tokens: mx.array, caches: list[Any]) -> mx.array:
        """(1, S) token ids -> (1, S, V) logits; the caches grow by S positions."""
        logits: mx.array = self.model(tokens, cache=caches)
        return logits
