"""How much a model is to think: the levels that clients name, and those that a model has."""

import re
from collections.abc import Sequence

from mtplx_engine.errors import InvalidRequest

# From little to much. OpenAI's `none` asks for the least; nothing here switches thinking off.
LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_VARIABLE = "reasoning_effort"
_NAMED = re.compile(r"""["'](minimal|low|medium|high|xhigh|max)["']""")
_USUAL = ("low", "medium", "high")


def levels_of(template: str) -> tuple[str, ...]:
    """The levels that a chat template knows, from little to much; none when it knows none.

    Templates compare the variable `reasoning_effort` with the levels or print it. Where one only
    prints it, the model was trained with the usual three.
    """
    if _VARIABLE not in template:
        return ()
    named = set(_NAMED.findall(template))
    return tuple(level for level in LEVELS if level in named) or _USUAL


def nearest(asked: str, levels: Sequence[str], where: str = "reasoning_effort") -> str:
    """The level of a model that serves what is asked: the next one up, else the highest.

    Args:
        asked: One of `LEVELS`.
        levels: Those of the model.
        where: The field that asks.

    Raises:
        InvalidRequest: There is no such level anywhere.
    """
    if asked not in LEVELS:
        text = f"{where} must be one of {', '.join(LEVELS)}; got {asked[:40]!r}."
        raise InvalidRequest(text, where)
    rank = LEVELS.index(asked)
    return next((level for level in levels if LEVELS.index(level) >= rank), levels[-1])
