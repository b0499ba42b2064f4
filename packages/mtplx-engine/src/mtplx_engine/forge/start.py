"""The head that training starts from: the model's own, or a fresh one made of trunk parts."""

import copy
from dataclasses import dataclass

from mtplx_engine.backend import mx, nn

from mlx.utils import tree_flatten
from mlx_lm.utils import dequantize_model

from mtplx_engine.errors import ModelError
from mtplx_engine.families.base import Family, TrunkParts
from mtplx_engine.families.head import Head, MTPModule
from mtplx_engine.families.registry import family_of
from mtplx_engine.models.attach import attach_head
from mtplx_engine.models.head_files import find_head
from mtplx_engine.models.locate import Located
from mtplx_engine.models.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Start:
    """What training starts from.

    Attributes:
        head: In float32; over the whole vocabulary when it is fresh.
        fresh: Whether it is not the model's own.
        vocabulary: Number of tokens that the trunk knows.
    """

    head: Head
    fresh: bool
    vocabulary: int

    def over(self, ids: list[int] | None) -> Head:
        """The same head, drafting over the given tokens, or over all."""
        vocab = None if ids is None else mx.array(ids, dtype=mx.int32)
        return Head(self.head.family, self.head.trunk, self.head.module, vocab)


def starting_head(trunk: Trunk, located: Located, *, fresh: bool, seed: int) -> Start:
    """Take the model's own head, or make one.

    Args:
        trunk: The loaded trunk.
        located: Where it came from.
        fresh: Leave the model's own head aside.
        seed: Of a fresh head's random weights.

    Raises:
        ModelError: Heads of this model type are not supported, or the model's own does not fit.
    """
    family = family_of(trunk.config)
    if family is None:
        kind = trunk.config.get("model_type")
        raise ModelError(f"A head cannot be trained: model type {kind!r} is not supported.")
    fresh = fresh or find_head(located.folder, located.head) is None
    attached = attach_head(trunk, located.folder, located.head, "off" if fresh else "on")
    if attached.parts is None or not attached.can_roll_back:
        raise ModelError("A head would be of no use: the model cannot take drafts back.")
    if attached.head is None:
        mx.random.seed(seed)
        module = _fresh(family, attached.parts)
        head = Head(family, attached.parts, module, None)
    else:
        head, module = attached.head, attached.head.module
        dequantize_model(module)
    module.set_dtype(mx.float32)
    module.train()
    mx.eval(module.parameters())
    row = head.trunk.unembed(mx.zeros((1, head.trunk.args.hidden_size)))
    return Start(head, fresh, int(row.shape[-1]))


def _fresh(family: Family, parts: TrunkParts) -> MTPModule:
    """A head that starts near something sensible, so that little has to be learnt.

    Its block is a copy of the trunk's last block of the same kind, where there is one, it is fed
    with the mean of both inputs, and its output is scaled like the hidden states that the trunk
    hands to its output head.
    """
    module = MTPModule(parts.args, family.block(parts.args))
    width = parts.args.hidden_size
    module.fc.weight = mx.concatenate([0.5 * mx.eye(width), 0.5 * mx.eye(width)], axis=1)
    trunk_body: nn.Module = parts.body
    module.norm.weight = trunk_body.norm.weight
    wanted = _shapes(module.layers[0])
    for layer in reversed(trunk_body.layers):
        candidate = copy.deepcopy(layer)
        dequantize_model(candidate)
        if _shapes(candidate) == wanted:
            module.layers[0].update(candidate.parameters())
            break
    return module


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in tree_flatten(module.parameters())}
