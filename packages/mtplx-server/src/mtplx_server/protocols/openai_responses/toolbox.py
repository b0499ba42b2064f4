"""The tools of a request, in the engine's vocabulary, and how the client names them.

The engine knows functions only. A custom tool becomes a function with one text as its argument; a
tool in a namespace goes by both names, joined.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mtplx_client.wire.responses import InputFormat, ResponsesTool
from mtplx_engine.chat.json_schema import checked
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.tools import Tool
from mtplx_server.errors import bad_request
from mtplx_server.protocols.fields import unread
from mtplx_server.protocols.tools import check_name

INPUT = "input"  # the one argument of what was a custom tool

# Fields that count, by types that are served.
READ = {
    "function": {"type", "name", "description", "parameters", "strict"},
    "custom": {"type", "name", "description", "format"},
    "namespace": {"type", "name", "description", "tools"},
}


class Known(NamedTuple):
    """A tool as the client names it; its kind is `function` or `custom`."""

    kind: str
    name: str
    namespace: str | None = None


@dataclass(slots=True)
class Toolbox:
    """The tools of a request.

    Attributes:
        skip_hosted: Whether tools are left out that only a vendor's servers can run.
        tools: What the model is told of.
        known: What the client calls these, by the engine's names.
        named: The engine's names of those that have a kind and a name in common.
        dropped: Types and names of tools that were left out.
        ignored: Paths of what has no effect.
    """

    skip_hosted: bool
    tools: list[Tool] = field(default_factory=list)
    known: dict[str, Known] = field(default_factory=dict)
    named: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    ignored: list[str] = field(default_factory=list)

    def add(self, given: Iterable[ResponsesTool], path: str, namespace: str | None = None) -> None:
        """Read some tools, of a namespace or of none; `path` is where their list stands.

        Raises:
            RequestRefused: One cannot be served, or has no proper name.
        """
        for at, tool in enumerate(given):
            here = f"{path}[{at}]"
            if tool.type in ("function", "custom"):
                self._add(tool, here, namespace)
            elif tool.type == "namespace":
                if namespace is not None:
                    text = f"{here}.type: a namespace cannot stand in another."
                    raise bad_request(text, param=f"{here}.type", code="unsupported_value")
                self._without_effect(tool)
                self.add(tool.tools or (), f"{here}.tools", _named(tool, here))
            else:
                self._drop(tool, here)

    def _add(self, given: ResponsesTool, path: str, namespace: str | None) -> None:
        origin = Known(given.type, _named(given, path), namespace)
        name = joined(origin.name, namespace)
        check_name(name, f"{path}.name")
        if name in self.known:
            text = f"{path}.name: there is another tool {name!r}."
            raise bad_request(text, param=f"{path}.name")
        self.known[name] = origin
        self.named.setdefault((origin.kind, origin.name), []).append(name)
        self._without_effect(given)
        if given.type == "function":
            where, strict = f"{path}.parameters", bool(given.strict)
            self.tools.append(Tool(name, given.description, given.parameters, strict, where))
            return
        pattern = _pattern(given.format, f"{path}.format")
        description = given.description
        if pattern is None and given.format is not None and given.format.definition:
            self.ignored.append("tools[].format")
            description = _explained(description, given.format)
        strict = pattern is not None
        self.tools.append(Tool(name, description, _one_text(pattern), strict, f"{path}.format"))

    def _without_effect(self, given: ResponsesTool) -> None:
        self.ignored += [f"tools[].{name}" for name in unread(given, READ[given.type])]

    def _drop(self, given: ResponsesTool, path: str) -> None:
        if not self.skip_hosted:
            text = (
                f"{path}.type: tools of type {given.type[:100]!r} run on a vendor's servers only;"
                " start the server with --skip-hosted-tools to leave them out."
            )
            raise bad_request(text, param=f"{path}.type", code="unsupported_value")
        self.dropped |= {given.type, given.name or given.type}
        self.ignored.append(f"tools[] of type {given.type}")


def joined(name: str, namespace: str | None) -> str:
    """The engine's name of a tool."""
    return name if not namespace else f"{namespace}__{name}"


def _named(given: ResponsesTool, path: str) -> str:
    if not given.name:
        raise bad_request(f"{path}.name is missing.", param=f"{path}.name")
    return given.name


def _pattern(form: InputFormat | None, path: str) -> str | None:
    """A pattern that enforces a form; None where there is none."""
    match form.type if form else "text":
        case "text":
            return None
        case "grammar":
            assert form is not None
        case other:
            text = f"{path}.type must be 'text' or 'grammar'; got {other!r}."
            raise bad_request(text, param=f"{path}.type", code="unsupported_value")
    if form.definition is None:
        raise bad_request(f"{path}.definition is missing.", param=f"{path}.definition")
    if form.syntax not in ("lark", "regex"):
        text = f"{path}.syntax must be 'lark' or 'regex'; got {form.syntax!r}."
        raise bad_request(text, param=f"{path}.syntax", code="unsupported_value")
    return _anchored(form.definition) if form.syntax == "regex" else None


def _anchored(pattern: str) -> str | None:
    """A pattern that matches a whole text as this one does; None if that cannot be enforced."""
    bare = pattern.removeprefix("^")
    if bare.endswith("$") and not bare.endswith("\\$"):
        bare = bare[:-1]
    if bare != pattern and "|" in bare:
        return None  # they may be of one branch only
    whole = f"^(?:{bare})$"
    return whole if _enforceable(bare) and _enforceable(whole) else None


def _enforceable(pattern: str) -> bool:
    """Whether a grammar can keep a text to a pattern."""
    try:
        checked({"type": "string", "pattern": pattern}, "pattern")
    except InvalidRequest:
        return False
    return True


def _explained(description: str | None, form: InputFormat) -> str:
    syntax = "Lark" if form.syntax == "lark" else "regular"
    told = f"The input must be of this form, in the syntax of {syntax} grammars:"
    return "\n\n".join(filter(None, (description, told, form.definition)))


def _one_text(pattern: str | None) -> dict[str, Any]:
    text = {"type": "string"} | ({} if pattern is None else {"pattern": pattern})
    return {
        "type": "object",
        "properties": {INPUT: text},
        "required": [INPUT],
        "additionalProperties": False,
    }
