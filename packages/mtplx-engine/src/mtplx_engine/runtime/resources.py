"""What all requests on the MLX thread share."""

from dataclasses import dataclass
from typing import Self

from mtplx_engine.decode.experience import Experience
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.runtime.bank import SessionBank
from mtplx_engine.runtime.likelihoods import Likelihoods
from mtplx_engine.runtime.memory_cost import SequenceCost


@dataclass(frozen=True, slots=True)
class Resources:
    """One model and what is known of it.

    Attributes:
        model: The model.
        experience: What its rounds taught.
        likelihoods: Names its tokens.
        cost: What a sequence takes of the memory.
        chunk: Tokens of a prompt read in one step.
        bank: The session cache.
    """

    model: LoadedModel
    experience: Experience
    likelihoods: Likelihoods
    cost: SequenceCost
    chunk: int
    bank: SessionBank

    @classmethod
    def of(cls, model: LoadedModel, bank: SessionBank, *, chunk: int) -> Self:
        """Measure a model that has just been loaded."""
        return cls(
            model,
            Experience(model.info.max_depth),
            Likelihoods(model.tokenizer),
            SequenceCost.measure(model, chunk=chunk),
            chunk,
            bank,
        )
