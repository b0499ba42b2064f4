"""The schemas of functions, made fit for grammars."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mtplx_engine.chat.dialects.alternatives import at
from mtplx_engine.chat.dialects.base import Dialect, Mark
from mtplx_engine.chat.json_schema import checked
from mtplx_engine.chat.marks import quoted
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.tools import Tool

Check = Callable[[Tool], Tool]

_ANYTHING: Mapping[str, Any] = {"type": "object"}
_KEPT = ("type", "enum", "const", "required")
_DEFINITIONS = ("$defs", "definitions")
# What may name properties besides `properties`.
_NAMING = ("$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas")
_MOST_TRIED = 100  # parameters that are looked at one by one
_MOST_REFERENCES = 3  # one behind the other, in an outline


def enforceable(
    tool: Tool,
    where: str,
    dialect: Dialect,
    mark: Mark = quoted,
    compiles: Callable[[str], None] | None = None,
) -> Tool:
    """A function whose schema can be enforced in calls of this dialect.

    A strict function keeps its own. Of the others, what cannot be enforced is made looser, one
    parameter at a time, so that one odd schema does not stop a request.

    Args:
        tool: As the request has it.
        where: What errors call its schema.
        dialect: How the model writes calls.
        mark: Writes marks in Lark.
        compiles: Raises InvalidRequest for rules, with `calls` among them, that no grammar can be
            made of; None: they are not tried.

    Raises:
        InvalidRequest: It is strict, and its schema cannot be enforced.
    """

    def fit(tool: Tool) -> Tool:
        fit = replace(tool, parameters=checked(dict(tool.parameters or {}), where))
        rules = dialect.grammar([fit], False, mark)  # raises for what this dialect cannot enforce
        if compiles is not None:
            compiles(rules)
        return fit

    if tool.parameters is None:
        return tool
    try:
        return fit(tool)
    except InvalidRequest as error:
        if tool.strict:
            raise _refusal(tool, where, error, fit) from error
    found = (_tried(tool, schema, fit) for schema in _looser(tool, fit))
    return next((each for each in found if each is not None), replace(tool, parameters=_ANYTHING))


def _tried(tool: Tool, schema: Mapping[str, Any], fit: Check) -> Tool | None:
    try:
        return fit(replace(tool, parameters=schema))
    except InvalidRequest:
        return None


def _refusal(tool: Tool, where: str, error: InvalidRequest, fit: Check) -> InvalidRequest:
    """The error that names a strict function and, where it is one, the parameter at fault."""
    if error.param is not None and error.param.startswith(where):
        return InvalidRequest(f"The function {tool.name!r} cannot be strict. {error}", error.param)
    schema, reason = tool.parameters or {}, str(error)
    for name, given in list(_parameters(schema).items())[:_MOST_TRIED]:
        try:
            fit(replace(tool, parameters=_alone(name, given, schema)))
        except InvalidRequest as fault:
            reason = f"The parameter {name!r} cannot be enforced: {fault}"
            break
    return InvalidRequest(f"The function {tool.name!r} cannot be strict. {reason}", where)


def _looser(tool: Tool, fit: Check) -> Iterator[dict[str, Any]]:
    """Schemas that keep less and less of what a function takes, and leave the rest open."""
    schema = tool.parameters or {}
    parameters, extra = _parameters(schema), schema.get("additionalProperties")
    kept = _kept(tool, parameters, fit)
    whole = len(kept) == len(parameters) and not any(key in schema for key in _NAMING)
    if kept and len(kept) == len(parameters):
        yield {**schema, "properties": kept}
    if not whole or (extra is None and not isinstance(schema.get("properties"), Mapping)):
        extra = True
    for each in (extra, *_looser_values(extra, schema)):
        yield _object(kept, each, schema)


def _kept(tool: Tool, parameters: Mapping[str, Any], fit: Check) -> dict[str, Any]:
    """Those of a function's parameters that can be enforced, the others looser or left out."""
    schema = tool.parameters or {}
    if len(parameters) > _MOST_TRIED:
        return {name: _outline(given, schema) for name, given in parameters.items()}
    kept: dict[str, Any] = {}
    for name, given in parameters.items():
        for each in (given, *_looser_values(given, schema)):
            if _tried(tool, _alone(name, each, schema), fit):
                kept[name] = each
                break
    return kept


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a schema, those that it only requires included."""
    properties = schema.get("properties")
    named = dict(properties) if isinstance(properties, Mapping) else {}
    return {**named, **{name: {} for name in _required(schema) if name not in named}}


def _required(schema: Mapping[str, Any]) -> list[str]:
    names = schema.get("required")
    return [each for each in names if isinstance(each, str)] if isinstance(names, list) else []


def _object(properties: Mapping[str, Any], extra: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with some of the properties of another."""
    found = {"type": "object", "properties": properties}
    found["required"] = [name for name in _required(schema) if name in properties]
    if extra is not None:
        found["additionalProperties"] = extra
    return found | {key: schema[key] for key in _DEFINITIONS if key in schema}


def _alone(name: str, value: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with one property of another."""
    return _object({name: value}, None, schema)


def _looser_values(schema: Any, root: Mapping[str, Any]) -> Iterator[Any]:
    """Schemas that allow more and more of the values that a schema allows."""
    outline = _outline(schema, root)
    yield outline
    if "type" in outline:
        yield {"type": outline["type"]}
    yield {}


def _outline(schema: Any, root: Mapping[str, Any], references: int = 0) -> dict[str, Any]:
    """The names, types and enumerations of a schema."""
    if not isinstance(schema, Mapping) or references > _MOST_REFERENCES:
        return {}
    if isinstance(reference := schema.get("$ref"), str):
        return _outline(at(reference, root), root, references + 1)
    outline: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    options = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(options, list):
        outline["anyOf"] = [_outline(each, root, references) for each in options]
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        inner = {name: _outline(each, root, references) for name, each in properties.items()}
        outline["properties"] = inner
    if isinstance(schema.get("items"), Mapping):
        outline["items"] = _outline(schema["items"], root, references)
    return outline
