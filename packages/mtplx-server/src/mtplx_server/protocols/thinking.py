"""How much to think, and what a request may tell the chat template."""

from collections.abc import Mapping
from typing import Any

from mtplx_engine.chat.effort import nearest
from mtplx_engine.info import ModelInfo

SWITCH = "enable_thinking"  # what chat templates call the variable


def effort(asked: str | None, model: ModelInfo, where: str) -> str | None:
    """The level of the served model that comes nearest to the one asked for; None: its own.

    Raises:
        InvalidRequest: There is no such level anywhere; `where` names the field that asks.
    """
    if asked is None or asked == "auto":
        return None
    # Nonsense is refused also where levels have no effect.
    level = nearest(asked, model.efforts or (asked,), where)
    return level if model.efforts else None


def unknown_variables(variables: Mapping[str, Any] | None, model: ModelInfo) -> list[str]:
    """Names of those that the chat template does not ask for, in order."""
    if model.template_variables is None:
        return []
    return sorted((variables or {}).keys() - model.template_variables)
