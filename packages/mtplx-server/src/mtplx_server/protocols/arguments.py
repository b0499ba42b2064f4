"""The arguments of a complete call as values, for protocols that do not send them as JSON text.

A model may write what JSON can name and nobody can send: halves of characters and numbers beyond
all bounds. What comes nearest is sent in their place.
"""

import json
import sys
from typing import Any

_LARGEST = sys.float_info.max


def values(text: str) -> Any:
    """The values of a call's arguments, the JSON text of an object."""
    whole = json.dumps(_read(text), ensure_ascii=False)
    return _read(whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _read(text: str) -> Any:
    return json.loads(text, parse_float=_number)


def _number(text: str) -> float:
    return max(-_LARGEST, min(_LARGEST, float(text)))
