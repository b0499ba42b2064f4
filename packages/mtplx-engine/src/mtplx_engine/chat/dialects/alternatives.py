"""What a JSON schema allows, as alternatives of one type each.

The schema was not checked by anybody: whatever is odd in it allows everything.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

Schema = Mapping[str, Any]

# Keywords that allow and forbid nothing.
NOTES = {"title", "description", "default", "examples", "deprecated", "$comment"}

# Schemas may name the same things again and again; so many alternatives are looked at, and so deep.
_MOST, _DEEPEST = 64, 30
_JOINING = {"$ref", "anyOf", "oneOf", "allOf"}
_TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")
_TELLING = {"properties": "object", "items": "array"}  # where no type is named


def kind(schema: Schema) -> str:
    """The type that one of the `alternatives` names; a string where it names none."""
    named = schema.get("type")
    return str(named) if named in _TYPES else "string"


def alternatives(schema: Any, root: Schema, trail: tuple[str, ...] = ()) -> list[Schema]:
    """What a schema allows, as schemas of one type each, or of none where it names none.

    References are followed, `allOf` is joined, `anyOf` and `oneOf` are spread; `allOf` is left
    where no schema is the join of two.

    Args:
        schema: Anything; what is no schema allows everything.
        root: What references begin at.
        trail: References and keywords that led here.
    """
    if not isinstance(schema, Mapping) or len(trail) > _DEEPEST:
        return [{}]
    found: list[Schema] = [{key: schema[key] for key in schema if key not in _JOINING}]
    for part in _parts(schema, root, trail):
        joined = (_join(left, right) for left in found for right in part)
        found = [each for each in joined if each is not None][:_MOST]
    return [each for one in found for each in _by_type(one)][:_MOST]


def _parts(schema: Schema, root: Schema, trail: tuple[str, ...]) -> Iterator[list[Schema]]:
    """What a schema is joined with."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        again = reference in trail  # a value that is described by itself only
        yield [] if again else alternatives(at(reference, root), root, (*trail, reference))
    for key in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(key), list):
            spread = (each for one in options for each in alternatives(one, root, (*trail, key)))
            yield list(islice(spread, _MOST))
    every = schema.get("allOf")
    for option in every if isinstance(every, list) else ():
        yield alternatives(option, root, (*trail, "allOf"))


def at(reference: str, root: Schema) -> Any:
    """What a reference like `#/$defs/name` leads to."""
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _join(left: Schema, right: Schema) -> Schema | None:
    """What both allow; None where that is nothing."""
    both = {**left, **right}
    for key in (left.keys() & right.keys()) - NOTES:
        if left[key] == right[key]:
            continue
        if key not in ("type", "enum"):
            both["allOf"] = [left, right]
            continue
        common = _common_types if key == "type" else _common_values
        both[key] = common(left[key], right[key])
        if not both[key]:
            return None
    return both


def _common_types(left: Any, right: Any) -> list[str]:
    one, other = _listed(left), _listed(right)
    both = [each for each in one if each in other]
    for these, those in ((one, other), (other, one)):
        if "integer" in these and "number" in those and "integer" not in both:
            both.append("integer")
    return both


def _common_values(left: Any, right: Any) -> list[Any]:
    return [value for value in _listed(left) if value in _listed(right)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _by_type(schema: Schema) -> list[Schema]:
    """One schema for each type that a schema names, or that its fixed values have."""
    types = _listed(schema["type"]) if "type" in schema else None
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        rest = {key: schema[key] for key in schema if key != "const"}
        kinds = dict.fromkeys(json_kind(json.dumps(value)) for value in values)
        return [
            {**rest, "type": each, "enum": [v for v in values if json_kind(json.dumps(v)) == each]}
            for each in kinds
            if types is None or each in types or (each == "integer" and "number" in types)
        ]
    if types is None:
        types = [_TELLING[key] for key in _TELLING if key in schema][:1]
    return [{**schema, "type": each} for each in types] or [schema]


def json_kind(text: str) -> str:
    """The type of a value, from its JSON."""
    match text[0]:
        case "{":
            return "object"
        case "[":
            return "array"
        case '"':
            return "string"
        case "t" | "f":
            return "boolean"
        case "n":
            return "null"
    return "integer" if text.removesuffix(".0").lstrip("-").isdigit() else "number"
