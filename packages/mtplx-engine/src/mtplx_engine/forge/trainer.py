"""The training loop: steps until the time is spent, checkpoints from which it goes on."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mtplx_engine.backend import mx, nn, read_float

import mlx.optimizers as optim
from mlx.utils import tree_flatten, tree_unflatten

from mtplx_engine.errors import ModelError
from mtplx_engine.families.head import Head
from mtplx_engine.forge.batches import epoch, read_batch
from mtplx_engine.forge.distil import distillation_loss
from mtplx_engine.forge.laws import LawFile
from mtplx_engine.forge.pack import flat_parameters, replace_safetensors
from mtplx_engine.forge.plan import Recipe


@dataclass(slots=True)
class Progress:
    """Where a run stands.

    Attributes:
        step: Steps done.
        tokens: Positions read, padding left out.
        seconds: Time spent on steps.
        loss: Of the last step.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    loss: float = math.nan


class Trainer:
    """One head, its optimizer and the position in the data."""

    def __init__(self, head: Head, laws: LawFile, learnt: Sequence[int], recipe: Recipe) -> None:
        self.head = head
        self.progress = Progress()
        self._laws = laws
        self._learnt = learnt
        self._recipe = recipe
        self._optimizer = optim.AdamW(
            learning_rate=recipe.learning_rate,
            betas=[0.9, 0.95],
            weight_decay=recipe.weight_decay,
        )
        self._optimizer.init(head.module.trainable_parameters())
        self._batches: list[list[int]] = []  # of the present epoch
        self._per_epoch = math.ceil(len(learnt) / recipe.batch)
        self._loss = nn.value_and_grad(head.module, self._of_batch)

    @property
    def spent(self) -> float:
        """The share of the run that is behind it, by time or by steps, from 0 to 1."""
        recipe, progress = self._recipe, self.progress
        steps = progress.step / recipe.most_steps if recipe.most_steps else 0.0
        return min(max(progress.seconds / recipe.seconds, steps), 1.0)

    def run(self, until: float, on_step: Callable[[Progress], None]) -> None:
        """Take steps until that share of the run is behind it."""
        while self.spent < until:
            self._step()
            on_step(self.progress)

    def _step(self) -> None:
        recipe, progress = self._recipe, self.progress
        began = time.monotonic()
        number, at = divmod(progress.step, self._per_epoch)
        if at == 0 or not self._batches:
            self._batches = epoch(
                self._laws, self._learnt, recipe.batch, seed=recipe.seed, number=number
            )
        batch = read_batch(self._laws, self._batches[at])
        self._optimizer.learning_rate = self._rate()
        loss, gradient = self._loss(batch)
        gradient, _ = optim.clip_grad_norm(gradient, recipe.clip)
        self._optimizer.update(self.head.module, gradient)
        mx.eval(loss, self.head.module.parameters(), self._optimizer.state)
        progress.loss = read_float(loss)
        progress.step += 1
        progress.tokens += sum(len(self._laws.pieces[index].ids) for index in self._batches[at])
        progress.seconds += time.monotonic() - began

    def _of_batch(self, batch: Any) -> mx.array:
        return distillation_loss(self.head, batch, self._recipe.depths)

    def _rate(self) -> float:
        recipe, progress = self._recipe, self.progress
        cosine = 0.5 * (1 + math.cos(math.pi * self.spent))
        share = recipe.least_rate + (1 - recipe.least_rate) * cosine
        return recipe.learning_rate * share * min(1.0, (progress.step + 1) / recipe.warm_up)

    def save(self, path: Path) -> None:
        """Write a checkpoint, atomically."""
        arrays = {f"head.{name}": value for name, value in flat_parameters(self.head).items()}
        state = tree_flatten(self._optimizer.state)
        arrays |= {f"optimizer.{name}": value for name, value in state}
        progress = self.progress
        replace_safetensors(
            path,
            arrays,
            {
                "step": str(progress.step),
                "tokens": str(progress.tokens),
                "seconds": repr(progress.seconds),
                "loss": repr(progress.loss),
            },
        )

    def restore(self, path: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            ModelError: It is damaged, or of another head.
        """
        try:
            loaded = mx.load(str(path), return_metadata=True)
            arrays, metadata = cast("tuple[dict[str, mx.array], dict[str, str]]", loaded)
            head = _below("head.", arrays)
            self.head.module.load_weights(list(head.items()), strict=True)
            self._optimizer.state = tree_unflatten(list(_below("optimizer.", arrays).items()))
            self.progress = Progress(
                int(metadata["step"]),
                int(metadata["tokens"]),
                float(metadata["seconds"]),
                float(metadata["loss"]),
            )
        except (RuntimeError, ValueError, KeyError) as error:
            text = f"{path} is damaged, or of another head; delete {path.parent}."
            raise ModelError(text) from error


def _below(prefix: str, arrays: dict[str, mx.array]) -> dict[str, mx.array]:
    return {
        name.removeprefix(prefix): value
        for name, value in arrays.items()
        if name.startswith(prefix)
    }
