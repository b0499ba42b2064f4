"""From a reference to a model that is ready to decode."""

import logging
import time

from mtplx_engine.backend import mx

from mtplx_engine import backend
from mtplx_engine.chat.template import ChatTemplate
from mtplx_engine.errors import EngineError, InvalidRequest, ModelInvalid
from mtplx_engine.info import LoadProgress, ModelInfo, OnLoadProgress
from mtplx_engine.models.attach import Attached, MTPChoice, attach_head
from mtplx_engine.models.config import context_length, one_line, sampling_defaults
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.models.locate import Located
from mtplx_engine.models.quantisable import quantisable
from mtplx_engine.models.trunk import Trunk, load_trunk

_log = logging.getLogger(__name__)


def load(
    located: Located, *, mtp: MTPChoice, depth: int | None, on_progress: OnLoadProgress
) -> LoadedModel:
    """Load the model in a folder and its head.

    Args:
        located: The folder and what to call it.
        mtp: Whether to draft.
        depth: Tokens to draft per round; None drafts as many as pays.
        on_progress: Called on this thread.

    Raises:
        ModelError: It cannot be served; the message says why.
        InvalidRequest: `depth` is more than the head can do.
    """
    on_progress(LoadProgress("load", f"reading weights of {located.id}"))
    trunk = load_trunk(located.folder)
    try:
        return _assemble(located, trunk, mtp=mtp, depth=depth, on_progress=on_progress)
    except EngineError:
        raise
    except Exception as error:  # settings of the wrong kind surface anywhere below
        raise ModelInvalid(f"{located.folder} cannot be used: {one_line(error)}") from error


def _assemble(
    located: Located,
    trunk: Trunk,
    *,
    mtp: MTPChoice,
    depth: int | None,
    on_progress: OnLoadProgress,
) -> LoadedModel:
    if mtp != "off":
        on_progress(LoadProgress("probe", "looking for an MTP head and measuring it"))
    attached = attach_head(trunk, located.folder, located.head, mtp)
    if attached.warning:
        _log.warning("MTP is %s", attached.reason)
    template = ChatTemplate(trunk.tokenizer)
    return LoadedModel(
        model=trunk.model,
        tokenizer=trunk.tokenizer,
        template=template,
        parts=attached.parts,
        head=attached.head,
        tape=attached.tape,
        can_roll_back=attached.can_roll_back,
        end_tokens=frozenset(trunk.tokenizer.eos_token_ids),
        defaults=sampling_defaults(located.folder),
        vocabulary=_vocabulary(trunk),
        info=_info(located, trunk, attached, template, mtp, depth),
    )


def _vocabulary(trunk: Trunk) -> int:
    """Logits per position, read off the shape of a lazy pass that is never computed."""
    return int(trunk.model(mx.array([[0]])).shape[-1])


def _info(
    located: Located,
    trunk: Trunk,
    attached: Attached,
    template: ChatTemplate,
    mtp: MTPChoice,
    depth: int | None,
) -> ModelInfo:
    family = attached.head.family if attached.head else None
    max_depth = family.max_depth if family else 0
    default = family.default_depth if family else 0
    kv = quantisable(trunk.model)
    if depth is not None and depth > max_depth:
        limit = f"depth must be at most {max_depth} here; got {depth}."
        raise InvalidRequest(f"{limit} MTP is {attached.reason}.", "depth")
    return ModelInfo(
        id=located.id,
        source=str(located.folder),
        architecture=str(trunk.config["model_type"]),
        parameters=trunk.parameters,
        context_length=context_length(located.folder, trunk.config),
        quantization=trunk.quantization + (", unpacked to float32" if trunk.unpacked else ""),
        dtype=str(trunk.dtype).removeprefix("mlx.core."),
        mtp=family is not None,
        mtp_reason=attached.reason,
        default_depth=default if depth is None else depth,
        max_depth=max_depth,
        backend=backend.describe(),
        created=int(time.time()),
        adaptive_depth=family is not None and depth is None,
        can_copy=attached.can_roll_back and mtp != "off",
        efforts=template.levels,
        tool_dialect=template.dialect.name,
        knows_tools=template.knows_tools,
        template_variables=template.variables,
        kv_groups=kv.groups,
        kv_obstacle=kv.obstacle,
    )
