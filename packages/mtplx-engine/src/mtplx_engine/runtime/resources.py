"""What all requests on the MLX thread share."""

from dataclasses import dataclass, field
from typing import Self

from mtplx_engine.caching import KVFormat
from mtplx_engine.decode.experience import Experience
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.runtime.likelihoods import Likelihoods
from mtplx_engine.runtime.memory_cost import SequenceCost


@dataclass(frozen=True, slots=True)
class Resources:
    """One model and what is known of it.

    Attributes:
        model: The model.
        experience: What its rounds taught.
        likelihoods: Names its tokens.
        chunk: Tokens of a prompt read in one step.
    """

    model: LoadedModel
    experience: Experience
    likelihoods: Likelihoods
    chunk: int
    _costs: dict[KVFormat | None, SequenceCost] = field(default_factory=dict)

    @classmethod
    def of(cls, model: LoadedModel, *, chunk: int) -> Self:
        """Measure a model that has just been loaded."""
        experience = Experience(model.info.max_depth)
        shared = cls(model, experience, Likelihoods(model.tokenizer), chunk)
        shared.cost(None)
        return shared

    def cost(self, kv: KVFormat | None) -> SequenceCost:
        """What a sequence of this format takes of the memory; measured when it is first asked."""
        if kv not in self._costs:
            self._costs[kv] = SequenceCost.measure(self.model, chunk=self.chunk, kv=kv)
        return self._costs[kv]
