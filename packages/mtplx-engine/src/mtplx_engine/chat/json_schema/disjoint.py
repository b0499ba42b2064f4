"""Proofs that no value is valid under two schemas, so that oneOf is the same as anyOf."""

import json
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from mtplx_engine.chat.json_schema.place import Place

Schema = dict[str, Any] | bool
KINDS = frozenset(("null", "boolean", "number", "string", "array", "object"))
_MOST_STEPS = 200_000  # a second
_MOST_LEVELS = 12  # of references and objects in each other


class _TooLong(Exception):
    pass


class Disjointness:
    """Compares schemas that `check.py` wrote. It proves only what follows from a few keywords."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._steps = 0

    def check(self, options: list[Schema], kinds: frozenset[str], place: Place) -> None:
        """Make sure that no value of these kinds is valid under two of the options.

        Raises:
            InvalidRequest: There is no proof.
        """
        kinds = frozenset("number" if kind == "integer" else kind for kind in kinds)
        for (i, one), (j, other) in combinations(enumerate(options), 2):
            try:
                proved = self._disjoint(one, other, kinds, _MOST_LEVELS)
            except _TooLong:
                raise place.fault("oneOf is too large to be checked; use anyOf") from None
            if not proved:
                raise place.fault(
                    f"oneOf is supported only where its options exclude each other, as by a"
                    f" required property with different constants; {i} and {j} do not. Use anyOf"
                )

    def _disjoint(self, one: Schema, other: Schema, kinds: frozenset[str], levels: int) -> bool:
        self._count()
        if one is False or other is False:
            return True
        if one is True or other is True or levels == 0:
            return False
        kinds = kinds & self._kinds(one, levels) & self._kinds(other, levels)
        if not kinds or _differ(one, other):
            return True
        if kinds == {"object"} and self._objects_disjoint(one, other, levels):
            return True
        return self._by_parts(one, other, kinds, levels) or self._by_parts(
            other, one, kinds, levels
        )

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooLong

    def _by_parts(
        self, one: dict[str, Any], other: dict[str, Any], kinds: frozenset[str], levels: int
    ) -> bool:
        """Whether something that `one` demands besides its own keywords excludes `other`."""
        if any(self._disjoint(part, other, kinds, levels - 1) for part in self._parts(one)):
            return True
        options = one.get("anyOf")
        return options is not None and all(
            self._disjoint(option, other, kinds, levels - 1) for option in options
        )

    def _parts(self, schema: dict[str, Any]) -> list[Schema]:
        parts: list[Schema] = list(schema.get("allOf", ()))
        if "$ref" in schema:
            parts.append(self._definitions[schema["$ref"].removeprefix("#/$defs/")])
        return parts

    def _kinds(self, schema: Schema, levels: int) -> frozenset[str]:
        """The types that values of a schema can have; perhaps too many."""
        self._count()
        if isinstance(schema, bool):
            return KINDS if schema else frozenset()
        kinds = KINDS
        if "type" in schema:
            types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            kinds &= {"number" if kind == "integer" else kind for kind in types}
        literals = _literals(schema)
        if literals is not None:
            kinds &= {_kind(value) for value in literals}
        if levels:
            for part in self._parts(schema):
                kinds &= self._kinds(part, levels - 1)
            if "anyOf" in schema:
                kinds &= frozenset().union(
                    *(self._kinds(option, levels - 1) for option in schema["anyOf"])
                )
        return kinds

    def _objects_disjoint(self, one: dict[str, Any], other: dict[str, Any], levels: int) -> bool:
        names = [*one.get("required", ()), *other.get("required", ())]
        return any(
            self._disjoint(_property(one, name), _property(other, name), KINDS, levels - 1)
            for name in dict.fromkeys(names)
        )


def _property(schema: dict[str, Any], name: str) -> Schema:
    """What a schema demands of a property; True if that is not plain to see."""
    if name in schema.get("properties", ()):
        found: Schema = schema["properties"][name]
        return found
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    return not closed


def _literals(schema: dict[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return schema.get("enum")


def _differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both list their values, and have none in common."""
    first, second = _literals(one), _literals(other)
    if first is None or second is None:
        return False
    return not _texts(first) & _texts(second)


def _texts(values: list[Any]) -> set[str]:
    """Equal texts for equal values: numbers are integers where they can be."""
    return {json.dumps(value, sort_keys=True) for value in values}


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "number"
