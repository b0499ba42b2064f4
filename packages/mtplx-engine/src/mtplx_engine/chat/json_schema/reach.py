"""How deep llguidance goes down into a schema while it compiles it."""

from collections.abc import Iterator
from typing import Any

from mtplx_engine.chat.json_schema.place import Place

Schema = dict[str, Any] | bool
# It needs up to 5 kB of the stack for a level, and at the end of the stack the process dies.
_MOST_LEVELS = 400


def check_reach(top: Schema, definitions: dict[str, Schema], place: Place) -> None:
    """Make sure that the stack suffices.

    A reference costs nothing to what was reached before, so the order matters. It is that of the
    keys, as `check.py` writes them.

    Raises:
        InvalidRequest: It may not.
    """
    reached: set[str] = set()
    path = [_inside(top)]
    while path:
        found = next(path[-1], None)
        if found is None:
            path.pop()
            continue
        if isinstance(found, str):
            if found in reached:
                continue
            reached.add(found)
            found = definitions[found]
        path.append(_inside(found))
        if len(path) > _MOST_LEVELS:
            raise place.fault(f"its references lead {_MOST_LEVELS} levels deep")


def _inside(schema: Schema) -> Iterator[Schema | str]:
    """The schemas in a schema, and the names of those that it refers to."""
    if isinstance(schema, bool):
        return
    for keyword, value in schema.items():
        if keyword == "$ref":
            yield value.removeprefix("#/$defs/")
        elif keyword in ("allOf", "anyOf", "prefixItems"):
            yield from value
        elif keyword in ("properties", "patternProperties"):
            yield from value.values()
        elif keyword in ("items", "additionalProperties"):
            yield value
