"""The field `think`: whether to think, or how much."""

from typing import Any, NamedTuple

from mtplx_engine.info import ModelInfo
from mtplx_server.protocols.thinking import SWITCH, effort


class Thinking(NamedTuple):
    """What the model is told.

    Attributes:
        variables: Of the chat template.
        level: How much to think.
        honoured: Whether the field has an effect, or asks for what is done anyway.
    """

    variables: dict[str, Any]
    level: str | None
    honoured: bool


def thinking(asked: bool | str | None, model: ModelInfo) -> Thinking:
    """Read the field.

    Raises:
        InvalidRequest: There is no such level anywhere.
    """
    if isinstance(asked, str):
        level = effort(asked, model, "think")
        return Thinking({}, level, honoured=level is not None or asked == "auto")
    if asked is None:
        return Thinking({}, None, honoured=True)
    if model.template_variables is None or SWITCH in model.template_variables:
        return Thinking({SWITCH: asked}, None, honoured=True)
    # Models with levels always think, others without the switch never do.
    return Thinking({}, None, honoured=asked == bool(model.efforts))


def thinks(model: ModelInfo) -> bool:
    """Whether it is known that the model can think."""
    return bool(model.efforts) or SWITCH in (model.template_variables or ())
