"""Asks llguidance about the keywords of one schema alone, so that its objections have a place."""

import json
from functools import lru_cache
from typing import Any

from llguidance import LLMatcher

from mtplx_engine.chat.json_schema.place import Place

_GROUPS = {
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems"),
    "object": ("patternProperties",),
}

# For objections that quote patterns as they were written anew.
_WORDS = {
    "Regex is empty": "pattern, format and length leave nothing",
    "Unable to determine if regex is empty": "pattern, format and length are too complex together",
    "disjoint": "the patterns must exclude each other",
    "lookarounds": "^ and $ are supported only at the ends of a pattern",
}


def probe(simple: dict[str, Any], kinds: frozenset[str], schema: dict[str, Any], at: Place) -> None:
    """Make sure that a value of each type can have what one schema demands of it.

    Args:
        simple: Keywords without those that combine schemas, but for patterns in `allOf`.
        kinds: Types that the schema allows.
        schema: The same as it was written, for the names of its keywords.
        at: Its place.

    Raises:
        InvalidRequest: llguidance refuses the keywords, or no value has it all.
    """
    for kind, group in _GROUPS.items():
        present = [name for name in group if name in simple]
        narrow = "integer" if kind == "number" and "number" not in kinds else kind
        if not present or narrow not in kinds:
            continue
        alone = {name: simple[name] for name in present}
        if "patternProperties" in alone:
            alone["patternProperties"] = dict.fromkeys(alone["patternProperties"], True)
        if kind == "string":
            alone["allOf"] = simple.get("allOf", [])
        if problem := _objection(json.dumps({"type": narrow, **alone})):
            named = next((name for name in present if name in schema), "format")
            raise at.key(named).fault(problem)


@lru_cache(maxsize=1024)
def _objection(schema: str) -> str | None:
    grammar = LLMatcher.grammar_from_json_schema(schema)
    lines = [line.strip() for line in LLMatcher.validate_grammar(grammar).splitlines()]
    if not lines:
        return None
    # Behind a parser's error is the one line that does not quote the source.
    reason = next((line for line in lines if line.startswith("error: ")), lines[0])
    reason = reason.removeprefix("error: ").removeprefix("Unsatisfiable schema: ")
    return next((ours for theirs, ours in _WORDS.items() if theirs in reason), reason)
