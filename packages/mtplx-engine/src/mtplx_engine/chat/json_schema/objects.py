"""Keywords of objects that grammars keep only in part."""

from typing import Any

from mtplx_engine.chat.json_schema.place import Place

# The time to make a grammar grows with their square, and so does that for a token: 100 and 20
# milliseconds for these.
_MOST_OPTIONAL = 1000


def required_names(value: Any, place: Place) -> list[str]:
    """The names that `required` lists, each once.

    Raises:
        InvalidRequest: It is not a list of names.
    """
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise place.fault("required must be a list of strings, beside properties")
    return list(dict.fromkeys(value))


def check_names(names: Any, place: Place) -> None:
    """Refuse a schema for names, as checked, unless all names are valid.

    Raises:
        InvalidRequest: They are not.
    """
    if names not in (True, {}, {"type": ["string"]}):
        problem = "propertyNames is not supported; use patternProperties and additionalProperties"
        raise place.fault(problem)


def settle_counts(schema: dict[str, Any], place: Place) -> None:
    """Drop counts of properties that hold anyway; refuse those that no grammar keeps.

    A grammar does not see when a name that is not in `properties` comes twice, so it cannot count
    how many different ones there are. And it counts those in `properties` up to one.

    Raises:
        InvalidRequest: It does not keep one.
    """
    required = set(schema.get("required", ()))
    optional = [
        name
        for name, inner in schema.get("properties", {}).items()
        if name not in required and inner is not False
    ]
    if len(optional) > _MOST_OPTIONAL:
        problem = f"more than {_MOST_OPTIONAL} properties that are not required"
        raise place.key("properties").fault(problem)
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    least = schema.get("minProperties", 0) - len(required)
    most = schema.get("maxProperties", len(required) + len(optional)) - len(required)
    if least <= 0:
        schema.pop("minProperties", None)
    if closed and most >= len(optional):
        schema.pop("maxProperties", None)
    if least > 1:
        problem = "minProperties may be at most one more than there are required properties"
        raise place.key("minProperties").fault(problem)
    for keyword in ("maxProperties", "minProperties"):
        if optional and keyword in schema:
            countable = most == 1 if "maxProperties" in schema else least == 1
            if not (closed and countable):
                problem = f"{keyword} is not supported beside properties that are not required"
                raise place.key(keyword).fault(problem)
