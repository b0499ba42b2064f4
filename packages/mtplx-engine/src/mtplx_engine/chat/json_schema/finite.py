"""Finds schemas whose values would have to go on for ever, like a list that must hold itself."""

from typing import Any

Schema = dict[str, Any] | bool
_CONTAINERS = {"array", "object"}


def without_endless(
    top: Schema, definitions: dict[str, Schema]
) -> tuple[Schema, dict[str, Schema]]:
    """The same schemas, with False for what is valid for no value that ends."""
    ending: set[str] = set()
    left = [*reversed(definitions)]  # what is referred to was found later
    while True:
        now = []
        for name in left:
            if _ends(definitions[name], ending):
                ending.add(name)
            else:
                now.append(name)
        if len(now) == len(left):
            break
        left = now
    if not _ends(top, ending):
        return False, {}
    if not left:
        return top, definitions
    kept = {name: _cut(definitions[name], ending) for name in definitions if name in ending}
    return _cut(top, ending), kept


def _ends(schema: Schema, ending: set[str]) -> bool:
    """Whether a schema has a value, if only the definitions in `ending` have any."""
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema and schema["$ref"].removeprefix("#/$defs/") not in ending:
        return False
    if not all(_ends(part, ending) for part in schema.get("allOf", ())):
        return False
    if "anyOf" in schema and not any(_ends(option, ending) for option in schema["anyOf"]):
        return False
    return _may_stop(schema, ending)


def _may_stop(schema: dict[str, Any], ending: set[str]) -> bool:
    """Whether some value has a type of the schema, and all the elements that it must have."""
    types = schema.get("type", "null")
    kinds = set(types) if isinstance(types, list) else {types}
    if kinds - _CONTAINERS:
        return True
    if "object" in kinds:
        properties = schema.get("properties", {})
        # Which of these a name belongs to is not known here.
        others = [*schema.get("patternProperties", {}).values()]
        if (rest := schema.get("additionalProperties", True)) or not others:
            others.append(rest)
        needed = [
            part
            for name in schema.get("required", ())
            for part in ([properties[name]] if name in properties else others)
        ]
        if all(_ends(part, ending) for part in needed):
            return True
    if "array" in kinds:
        prefix = schema.get("prefixItems", [])
        least = schema.get("minItems", 0)
        needed = [*prefix[:least], *([schema.get("items", True)] if least > len(prefix) else [])]
        return all(_ends(item, ending) for item in needed)
    return False


def _cut(schema: Schema, ending: set[str]) -> Schema:
    """The same schema without references to anything but `ending`."""
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema and schema["$ref"].removeprefix("#/$defs/") not in ending:
        return False
    out = dict(schema)
    for keyword in ("allOf", "anyOf", "prefixItems"):
        if keyword in out:
            out[keyword] = [_cut(inner, ending) for inner in out[keyword]]
    for keyword in ("properties", "patternProperties"):
        if keyword in out:
            out[keyword] = {name: _cut(inner, ending) for name, inner in out[keyword].items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in out:
            out[keyword] = _cut(out[keyword], ending)
    return out
