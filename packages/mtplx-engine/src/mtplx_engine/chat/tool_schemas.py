"""The schemas of functions, made fit for grammars."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mtplx_engine.chat.dialects.base import Dialect
from mtplx_engine.chat.json_schema import checked
from mtplx_engine.chat.marks import quoted
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.tools import Tool

_ANYTHING: Mapping[str, Any] = {"type": "object"}
_KEPT = ("type", "enum", "const", "required")


def enforceable(tool: Tool, where: str, dialect: Dialect) -> Tool:
    """A function whose schema can be enforced in calls of this dialect.

    A strict function keeps its own. Of the others that cannot be enforced, the names, types and
    enumerations are, so that one odd schema does not stop a request.

    Args:
        tool: As the request has it.
        where: What errors call its schema.
        dialect: How the model writes calls.

    Raises:
        InvalidRequest: It is strict, and its schema cannot be enforced.
    """
    try:
        return _fit(tool, where, dialect)
    except InvalidRequest as error:
        if tool.strict:
            message = f"The function {tool.name!r} cannot be strict. {error}"
            raise InvalidRequest(message, error.param) from error
    for schema in (_outline(tool.parameters or {}), _ANYTHING):
        try:
            return _fit(replace(tool, parameters=schema), where, dialect)
        except InvalidRequest:
            continue
    return replace(tool, parameters=_ANYTHING)


def _fit(tool: Tool, where: str, dialect: Dialect) -> Tool:
    if tool.parameters is None:
        return tool
    fit = replace(tool, parameters=checked(dict(tool.parameters), where))
    dialect.grammar([fit], False, quoted)  # raises for what only this dialect cannot enforce
    return fit


def _outline(schema: Any) -> Any:
    """The names, types and enumerations of a schema."""
    if not isinstance(schema, Mapping):
        return {}
    outline: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        outline["properties"] = {name: _outline(each) for name, each in properties.items()}
    if isinstance(schema.get("items"), Mapping):
        outline["items"] = _outline(schema["items"])
    return outline
