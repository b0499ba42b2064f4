"""The parameters of a tool, by its JSON schema: which there are, and of which types."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mtplx_engine.chat.dialects.alternatives import NOTES, Schema, alternatives, kind
from mtplx_engine.chat.json_text import JSON_OPTIONS
from mtplx_engine.chat.marks import quoted
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.tools import Tool

_UNSUPPORTED = (
    *("allOf", "not", "if", "patternProperties", "minProperties", "maxProperties"),
    *("dependentRequired", "dependentSchemas", "dependencies"),
)
_LONGEST_KEY = 64  # of those that a schema does not name
# As chat templates write JSON. Without room for white space, a value's first character tells JSON
# from text.
_STYLE = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "json_allowed_escapes": JSON_OPTIONS["json_allowed_escapes"],
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool, or all those that its schema allows without naming them.

    Attributes:
        name: Its key among the arguments; of unnamed ones, the keyword that allows them.
        schema: Of its value.
        texts: What is allowed of strings; none: it is no string.
        others: What else is allowed.
        required: Whether a call must have it.
        root: The schema of all arguments, which `schema` may refer to.
        taken: Keys that unnamed ones cannot have; None: this is a named one.
    """

    name: str
    schema: Schema
    texts: tuple[Schema, ...]
    others: tuple[Schema, ...]
    required: bool
    root: Schema
    taken: tuple[str, ...] | None = None

    @property
    def is_any(self) -> bool:
        """Whether its value may be of any type, so that `texts` does not tell all."""
        return not self.schema.keys() - NOTES

    def fault(self, problem: str) -> InvalidRequest:
        """The error to raise because its value cannot be enforced."""
        text = f"The parameter {self.name!r} cannot be enforced in this model's calls: {problem}."
        return InvalidRequest(text, "tools")

    def json(self, others: Sequence[Schema] | None = None) -> str:
        """Its value, or what of it is in `others`, as JSON in Lark."""
        schema = dict(self.schema) if others is None else {"anyOf": list(others)}
        definitions = {key: self.root[key] for key in ("$defs", "definitions") if key in self.root}
        return f"%json {json.dumps({**schema, **definitions, 'x-guidance': _STYLE})}"


def types_of(tool: Tool | None, name: str) -> set[str]:
    """The types that the value of a parameter may have; a string where nothing is known."""
    root = tool.parameters if tool and tool.parameters else {}
    for top in alternatives(root, root):
        properties = top.get("properties")
        if isinstance(properties, Mapping) and name in properties:
            found = alternatives(properties[name], root)
        else:
            found = alternatives(top.get("additionalProperties"), root)
        return {kind(each) for each in found} or {"string"}
    return {"string"}


def parameters_of(tool: Tool) -> list[Parameter]:
    """The parameters of a tool, in the order of its schema.

    Raises:
        InvalidRequest: The schema says more than which parameters there are.
    """
    root = tool.parameters or {}
    tops = [top for top in alternatives(root, root) if top.get("type", "object") == "object"]
    unsupported = [key for top in tops for key in _UNSUPPORTED if key in top]
    if len(tops) != 1 or unsupported:
        problem = f"{unsupported[0]!r} in" if unsupported else "alternatives in"
        text = f"Calls of {tool.name!r} cannot be enforced: {problem} the schema of its parameters."
        raise InvalidRequest(text, "tools")
    required, extra = tops[0].get("required", ()), tops[0].get("additionalProperties")
    schemas = dict(tops[0].get("properties", {}))
    schemas |= {name: extra for name in required if name not in schemas}
    found = [
        _parameter(name, schema, name in required, root)
        for name, schema in schemas.items()
        if schema is not False or name in required
    ]
    # Who names parameters and nothing else means that there are no others.
    closed = extra is None and (tool.parameters is None or "properties" in tops[0])
    if not closed and extra is not False:
        unnamed = _parameter("additionalProperties", extra, False, root)
        found.append(replace(unnamed, taken=tuple(schemas)))
    return found


def check_word(text: str, stops: Sequence[str], *, spaced: bool = False) -> None:
    """See that a name or key is found again where white space or one of `stops` ends it.

    Args:
        text: The name or key.
        stops: What it cannot have in it.
        spaced: Whether spaces do not end it.

    Raises:
        InvalidRequest: It is not.
    """
    word = text.replace(" ", "_") if spaced and text.strip() == text else text
    if word.split() != [word] or any(stop in text for stop in stops):
        raise InvalidRequest(f"The name {text!r} cannot be written in this model's calls.", "tools")


def key_rules(
    rule: str, parameter: Parameter, stops: Sequence[str], *, spaced: bool = False
) -> tuple[str, list[str]]:
    """Lark of a parameter's key, and the rules for that.

    Args:
        rule: The name of the parameter's rule.
        parameter: Named or not.
        stops: As for `check_word`.
        spaced: The same.

    Raises:
        InvalidRequest: Its name cannot be written.
    """
    if parameter.taken is None:
        check_word(parameter.name, stops, spaced=spaced)
        return quoted(parameter.name), []
    never = r"\p{C}" + "".join(sorted({f"\\x{{{ord(stop[0]):x}}}" for stop in stops}))
    edge, within = rf"[^\s{never}]", rf"[^{never}]" if spaced else rf"[^\s{never}]"
    taken = f" & ~({' | '.join(map(quoted, parameter.taken))})" if parameter.taken else ""
    key = f"{rule.upper()}_KEY"
    return key, [f"{key}: /{edge}({within}{{0,{_LONGEST_KEY}}}{edge})?/{taken}"]


def repeated(rule: str, parameter: Parameter, body: str, separator: str) -> list[str]:
    """Lark rules for a parameter, or for one or more unnamed ones with separators."""
    if parameter.taken is None:
        return [f"{rule}: {body}"]
    return [f"{rule}: {rule}_one ({separator} {rule}_one)*", f"{rule}_one: {body}"]


def in_order(parameters: Sequence[Parameter], rule: str, separator: str) -> str:
    """Lark for these parameters with separators, those left out that need not be there.

    Args:
        parameters: In their order.
        rule: Each has a rule with this name and its index.
        separator: What is between two, as text.
    """
    starts: list[str] = []
    for at, first in enumerate(parameters):
        after = (
            f"({json.dumps(separator)} {rule}{index}){'' if each.required else '?'}"
            for index, each in enumerate(parameters[at + 1 :], at + 1)
        )
        starts.append(" ".join([f"{rule}{at}", *after]))
        if first.required:
            break
    if not starts:
        return ""
    optional = "" if any(each.required for each in parameters) else "?"
    return f"({' | '.join(starts)}){optional}"


def _parameter(name: str, schema: Any, required: bool, root: Schema) -> Parameter:
    found = alternatives(schema, root)
    texts = tuple(each for each in found if kind(each) == "string")
    others = tuple(each for each in found if kind(each) != "string")
    kept = schema if isinstance(schema, Mapping) else {}
    parameter = Parameter(name, kept, texts, others, required, root)
    if not found or schema is False:
        raise parameter.fault("its schema allows nothing")
    return parameter
