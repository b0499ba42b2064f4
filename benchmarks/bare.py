"""The model without an engine around it, for peers."""

from dataclasses import dataclass

from measure import MODEL

from mtplx_engine.families.head import Head
from mtplx_engine.models.attach import attach_head
from mtplx_engine.models.locate import locate
from mtplx_engine.models.trunk import Trunk, load_trunk


@dataclass(frozen=True, slots=True)
class Bare:
    """Weights of a benchmark's own, on its own thread."""

    trunk: Trunk
    head: Head


def load_bare() -> Bare:
    """The model that is measured."""
    located = locate(MODEL, on_progress=lambda _: None)
    trunk = load_trunk(located.folder)
    head = attach_head(trunk, located.folder, located.head, "on").head
    assert head is not None
    return Bare(trunk, head)
