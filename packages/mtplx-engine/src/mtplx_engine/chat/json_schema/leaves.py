"""Keywords that hold no schemas: types, literals, sizes, patterns and formats."""

from typing import Any

from mtplx_engine.chat.json_schema.formats import constraint_of
from mtplx_engine.chat.json_schema.numbers import exact
from mtplx_engine.chat.json_schema.patterns import CONTROL, translate
from mtplx_engine.chat.json_schema.place import Place

KINDS = frozenset(("null", "boolean", "number", "integer", "string", "array", "object"))
_SIZES = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_MOST = 10**9  # a size; near the bound of 32 bits behind us


def kinds_of(schema: dict[str, Any], place: Place) -> frozenset[str]:
    """The types that `type` allows.

    Raises:
        InvalidRequest: It is wrong.
    """
    if "type" not in schema:
        return KINDS
    value = schema["type"]
    kinds = value if isinstance(value, list) else [value]
    for kind in kinds:
        if not isinstance(kind, str) or kind not in KINDS:
            known = ", ".join(sorted(KINDS))
            raise place.key("type").fault(f"{kind!r} is not a type; these are: {known}")
    if not kinds:
        raise place.key("type").fault("type is empty, so it accepts nothing")
    return frozenset(kinds)


def sizes(schema: dict[str, Any], place: Place) -> dict[str, int]:
    """The keywords that count characters, elements or properties, as integers.

    Raises:
        InvalidRequest: One is not a count.
    """
    out: dict[str, int] = {}
    for name in _SIZES:
        if name in schema:
            value = exact(schema[name], place.key(name))
            if not isinstance(value, int) or not 0 <= value <= _MOST:
                raise place.key(name).fault(f"{name} must be an integer from 0 to {_MOST}")
            out[name] = value
    return out


def texts(schema: dict[str, Any], kinds: frozenset[str], place: Place) -> list[dict[str, Any]]:
    """What `pattern` and `format` demand, in llguidance's terms; all of these are to hold.

    Raises:
        InvalidRequest: One is wrong or cannot be kept.
    """
    out: list[dict[str, Any]] = []
    if "pattern" in schema:
        out.append({"pattern": pattern(schema["pattern"], place.key("pattern"))})
    if "format" in schema:
        try:
            out.append(constraint_of(schema["format"], kinds))
        except ValueError as error:
            raise place.key("format").fault(str(error)) from None
    return out


def pattern(value: Any, place: Place) -> str:
    """A pattern in Rust's syntax.

    Raises:
        InvalidRequest: It is wrong or cannot be followed.
    """
    if not isinstance(value, str):
        raise place.fault("a pattern must be a string")
    try:
        return translate(value)
    except ValueError as error:
        raise place.fault(str(error)) from None


def literal(value: Any, place: Place) -> Any:
    """A value of `const` or `enum`, with numbers as they are compared behind us.

    Raises:
        InvalidRequest: It cannot be written or compared exactly.
    """
    if isinstance(value, dict):
        return {text(name, place): literal(inner, place.key(name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [literal(inner, place.item(i)) for i, inner in enumerate(value)]
    if isinstance(value, str):
        return text(value, place)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return exact(value, place)
    return value


def text(value: str, place: Place) -> str:
    """A text that has to be written as it stands.

    Raises:
        InvalidRequest: It cannot be written.
    """
    if found := CONTROL.search(value):
        raise place.fault(f"the control character {ord(found[0])} is not supported")
    return value


def members(value: Any) -> int:
    """How many values are in a value, at any level."""
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return 0
    return len(value) + sum(members(one) for one in inner)
