"""Attaching a head to a loaded trunk, and deciding whether it may draft."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from mtplx_engine.backend import mx, nn

from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import dequantize_model, infer_quant_config

from mtplx_engine.cache.rollback import can_roll_back
from mtplx_engine.cache.tape import Tape
from mtplx_engine.errors import ModelError, ModelInvalid
from mtplx_engine.families.base import Family, TrunkParts, Weights
from mtplx_engine.families.head import Head, MTPModule
from mtplx_engine.families.norms import Shift, likely_shift, shift_norms, stated_shift
from mtplx_engine.families.registry import family_of
from mtplx_engine.models.head_files import HeadFiles, find_head
from mtplx_engine.models.probe import Probe
from mtplx_engine.models.trunk import Trunk

MTPChoice = Literal["auto", "on", "off"]

# The embedded default's head, a weak one, agrees with its trunk on 27 % of the probe's sample. With
# the halves of the pair swapped it agrees on 8 %, with shifted norms or random weights on none.
LEAST_AGREEMENT = 0.10
# Relative to the largest hidden state. Rolling back is exact; half-precision kernels of another
# shape may round otherwise, a wrong roll-back is off by one or more.
MOST_ROLLBACK_ERROR = 0.02


@dataclass(frozen=True, slots=True)
class Attached:
    """The outcome: a head that may draft, or none, and why.

    Attributes:
        head: None when it does not draft.
        reason: A clause that begins with "on" or "off".
        warning: Whether something is wrong that somebody should look at.
        parts: Handles into the trunk; None for a model type that no family describes.
        tape: Recorder of the recurrent layers; None without such layers.
        can_roll_back: Whether drafts, from wherever, can be taken back.
    """

    head: Head | None
    reason: str
    warning: bool = False
    parts: TrunkParts | None = None
    tape: Tape | None = None
    can_roll_back: bool = False


def attach_head(trunk: Trunk, folder: Path, sidecar: Path | None, choice: MTPChoice) -> Attached:
    """Find, load, probe and attach the head of a trunk.

    Args:
        trunk: The loaded trunk.
        folder: Its model folder.
        sidecar: A head file outside the folder, or None.
        choice: `off` never drafts, `on` drafts whatever the probe says, `auto` believes it.

    Raises:
        ModelError: `on`, but there is no head that could draft.
        ModelInvalid: The head's tensors do not fit; the message names them.
    """
    family = family_of(trunk.config)
    parts = family.parts(trunk.model) if family else None
    tape = Tape(parts.recurrent) if parts and parts.recurrent else None
    probe = Probe(parts, trunk.tokenizer, lambda: make_prompt_cache(trunk.model)) if parts else None
    obstacle = _rollback_obstacle(trunk, tape, probe)
    attached = _attach(trunk, folder, sidecar, choice, family, probe, obstacle)
    return replace(attached, parts=parts, tape=tape, can_roll_back=obstacle is None)


def _rollback_obstacle(trunk: Trunk, tape: Tape | None, probe: Probe | None) -> str | None:
    """Why drafts cannot be taken back; None when they can."""
    if not can_roll_back(make_prompt_cache(trunk.model), tape):
        return "the model's caches cannot give positions back"
    if tape is None or probe is None:
        return None
    error = probe.rollback_error(tape)
    if error > MOST_ROLLBACK_ERROR:
        return f"this mlx-lm's recurrent layers cannot be rolled back (error {error:.2g})"
    return None


def _attach(
    trunk: Trunk,
    folder: Path,
    sidecar: Path | None,
    choice: MTPChoice,
    family: Family | None,
    probe: Probe | None,
    obstacle: str | None,
) -> Attached:
    if choice == "off":
        return Attached(None, "off, because it was switched off")
    files = find_head(folder, sidecar)
    if files is None:
        return _refuse("the model has no MTP head", choice)
    if family is None or probe is None:
        kind = trunk.config.get("model_type")
        return _refuse(f"heads of model type {kind!r} are not supported", choice)
    if obstacle is not None:
        return _refuse(obstacle, choice, warning=True)
    head, agreement = _build(family, probe.parts, files, trunk, probe)
    return _judge(head, files, agreement, choice)


def _refuse(obstacle: str, choice: MTPChoice, *, warning: bool = False) -> Attached:
    if choice == "on":
        raise ModelError(f"MTP was asked for but is not possible: {obstacle}.")
    return Attached(None, f"off, because {obstacle}", warning)


def _judge(head: Head, files: HeadFiles, agreement: float, choice: MTPChoice) -> Attached:
    measured = f"{files.source}; it agrees with the trunk on {agreement:.0%} of a sample"
    if agreement >= LEAST_AGREEMENT:
        return Attached(head, f"on, with the {head.family.name} head in {measured}")
    if choice == "on":
        reason = f"on, because it was asked for, but the head in {measured}, which is too little"
        return Attached(head, reason, warning=True)
    reason = f"off, because the head in {measured}, so it is wired wrongly or not trained"
    return Attached(None, reason, warning=True)


def _build(
    family: Family, parts: TrunkParts, files: HeadFiles, trunk: Trunk, probe: Probe
) -> tuple[Head, float]:
    """Load the head under the norm convention that is stated, or else fits best."""
    weights = _read(files)
    vocab = weights.pop("draft_vocab", None)
    weights = family.prepare(weights)

    def build(shift: Shift) -> tuple[Head, float]:
        module = _load_module(family, parts, shift_norms(weights, shift), files, trunk)
        head = Head(family, parts, module, vocab)
        return head, probe.agreement(head)

    if not family.zero_centred_norms:
        return build("none")
    stated = stated_shift(files.norms, beside_raw_trunk=files.beside_raw_trunk)
    if stated is not None:
        return build(stated)
    # Packs in the wild are shifted in part, so all three are measured; the likely one goes first
    # and wins a tie.
    shifts: list[Shift] = ["none", "all", "layers"]
    likely = likely_shift(weights)
    candidates = [build(shift) for shift in sorted(shifts, key=lambda shift: shift != likely)]
    return max(candidates, key=lambda candidate: candidate[1])


def _read(files: HeadFiles) -> Weights:
    """The head's tensors by their relative names. `mx.load` is lazy, so the rest costs nothing."""
    paths = {path for path, _ in files.tensors.values()}
    opened = {path: cast("Weights", mx.load(str(path))) for path in paths}
    return {name: opened[path][stored] for name, (path, stored) in files.tensors.items()}


def _load_module(
    family: Family, parts: TrunkParts, weights: Weights, files: HeadFiles, trunk: Trunk
) -> MTPModule:
    """Build the module, quantise it as its weights are, and load them strictly."""
    module = MTPModule(parts.args, family.block(parts.args))
    _check_names(module, weights, files)

    def quantised(path: str, layer: nn.Module) -> dict[str, object] | bool:
        if not hasattr(layer, "to_quantized") or f"{path}.scales" not in weights:
            return False
        settings: dict[str, object] = infer_quant_config(path, layer, weights)
        return settings

    try:
        nn.quantize(module, class_predicate=quantised)
        module.load_weights(list(weights.items()), strict=True)
    except ValueError as error:
        raise ModelInvalid(f"The MTP head in {files.source} does not fit: {error}") from error
    if trunk.unpacked:
        dequantize_model(module)
    module.set_dtype(trunk.dtype)
    module.eval()
    mx.eval(module.parameters())
    return module


def _check_names(module: MTPModule, weights: Weights, files: HeadFiles) -> None:
    """Name every tensor that is missing or left over."""
    expected = {name for name, _ in tree_flatten(module.parameters())}
    packed = {name for name in weights if name.endswith((".scales", ".biases"))}
    missing = sorted(expected - weights.keys())
    extra = sorted(weights.keys() - expected - packed)
    if missing or extra:
        problems = [f"missing {', '.join(missing)}"] if missing else []
        problems += [f"unexpected {', '.join(extra)}"] if extra else []
        raise ModelInvalid(f"The MTP head in {files.source} does not fit: {'; '.join(problems)}.")
