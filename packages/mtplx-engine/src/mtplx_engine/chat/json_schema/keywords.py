"""The keywords of all drafts of JSON schema, by what becomes of them."""

import difflib
from functools import lru_cache
from typing import Any

from mtplx_engine.chat.json_schema.place import Place

# fmt: off
# Kept by a grammar. The other modules here say how.
ENFORCED = {
    "type", "const", "enum", "allOf", "anyOf", "oneOf", "$ref",
    "properties", "patternProperties", "additionalProperties", "required", "minProperties",
    "maxProperties", "propertyNames",
    "items", "prefixItems", "additionalItems", "minItems", "maxItems",
    "minLength", "maxLength", "pattern", "format",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
}

# Say nothing about which values are valid, or only by the references that name them.
ANNOTATIONS = {
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary",
    "$defs", "definitions",
    "$comment", "title", "description", "default", "examples", "example", "deprecated",
    "readOnly", "writeOnly",
    "contentEncoding", "contentMediaType", "contentSchema", "discriminator",
}
# fmt: on

# No grammar keeps them. Each with what to do instead.
REFUSED = {
    "not": "say what is allowed instead",
    "if": "use anyOf",
    "then": "use anyOf",
    "else": "use anyOf",
    "uniqueItems": "leave it out and check the answer",
    "contains": "use items",
    "minContains": "use items",
    "maxContains": "use items",
    "unevaluatedItems": "use items",
    "unevaluatedProperties": "use additionalProperties",
    "dependentRequired": "use anyOf",
    "dependentSchemas": "use anyOf",
    "dependencies": "use anyOf",
    "$dynamicRef": "use $ref",
    "$recursiveRef": "use $ref",
    "nullable": 'use a type like ["string", "null"]',
    "divisibleBy": "use multipleOf",
    "disallow": "say what is allowed instead",
    "extends": "use allOf",
    "x-guidance": "leave it out",
}

# With these values they forbid nothing.
_VOID = {"uniqueItems": False, "unevaluatedItems": True, "unevaluatedProperties": True}

_OLD_DRAFTS = {f"http://json-schema.org/draft-0{number}/schema": number for number in (4, 6, 7)}
_NEW_DRAFTS = [f"https://json-schema.org/draft/{date}/schema" for date in ("2019-09", "2020-12")]
_CONSTRAINING = sorted(ENFORCED | REFUSED.keys())


def check_keywords(schema: dict[str, Any], place: Place, *, is_root: bool, draft: int) -> None:
    """Make sure that every keyword is kept by a grammar or needs not be.

    Args:
        schema: A schema.
        place: Of the schema.
        is_root: Whether it is the whole schema.
        draft: What `draft_of` found for the whole schema.

    Raises:
        InvalidRequest: One is not kept, is unknown and looks like a slip, or changes what the
            references below it mean.
    """
    for keyword, value in schema.items():
        if keyword in ENFORCED or (keyword in _VOID and value is _VOID[keyword]):
            continue
        if keyword in REFUSED:
            raise place.key(keyword).fault(f"{keyword} is not supported; {REFUSED[keyword]}")
        if keyword in ("$defs", "definitions") and not isinstance(value, dict):
            raise place.key(keyword).fault(f"{keyword} must be an object of schemas")
        if not is_root and (keyword == "$id" or (keyword == "id" and draft == 4)):
            raise place.key(keyword).fault(f"{keyword} is supported only at the top; leave it out")
        known = keyword in ANNOTATIONS or keyword.startswith("x-")
        if not known and (near := _meant(keyword)):
            raise place.key(keyword).fault(f"{keyword} is unknown; perhaps {near} is meant")
    if draft <= 7 and "$ref" in schema:
        for keyword in schema.keys() & ENFORCED - {"$ref"}:
            problem = f"this draft ignores {keyword} beside a $ref; put the $ref into allOf"
            raise place.key(keyword).fault(problem)


def draft_of(schema: Any, place: Place) -> int:
    """The draft that a whole schema is written in: 4, 6, 7 or a year; without any, the latest.

    Raises:
        InvalidRequest: It names a vocabulary of its own.
    """
    name = schema.get("$schema") if isinstance(schema, dict) else None
    if name is None:
        return 2020
    plain = name.removesuffix("#") if isinstance(name, str) else ""
    if plain in _OLD_DRAFTS:
        return _OLD_DRAFTS[plain]
    if plain in _NEW_DRAFTS:
        return 2019 + _NEW_DRAFTS.index(plain)
    raise place.key("$schema").fault(f"the vocabulary {name!r} is not supported; leave it out")


@lru_cache(maxsize=1024)
def _meant(keyword: str) -> str | None:
    """The keyword that this is probably a slip for, if for any."""
    near = [
        known
        for known in _CONSTRAINING
        if known[0] == keyword[:1].lower() and abs(len(known) - len(keyword)) <= 2
    ]
    close = difflib.get_close_matches(keyword, near, n=1, cutoff=0.84)
    return close[0] if close else None
