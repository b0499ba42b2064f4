"""Values that stand without quotes between marks, as terminals in Lark.

A string is written as it is. Where other types are allowed, too, what looks like one of these is
read as such; so no string may look so.
"""

import json
import re
from collections.abc import Sequence

from mtplx_engine.chat.dialects.alternatives import NOTES, Schema, kind
from mtplx_engine.chat.dialects.parameters import Parameter
from mtplx_engine.chat.marks import quoted

_ANY = "(?s:.*)"
_UNSUPPORTED = ("allOf", "not", "if")
_SCALARS = {
    "null": "null",
    "boolean": "true|false",
    "integer": "-?(0|[1-9][0-9]{0,18})",
    "number": r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,18})?",
}
_NUMBER = r"[-+.]{0,2}[0-9][-+.0-9A-Za-z_]*[ \t\r\n]*"
_LOOKS = {
    "null": r"(null|None)[ \t\r\n]*",
    "boolean": r"(true|false|True|False)[ \t\r\n]*",
    "integer": _NUMBER,
    "number": _NUMBER,
}
_BEGINNINGS = {"integer": "[-+.0-9]", "number": "[-+.0-9]", "object": r"\{", "array": r"[\[(]"}
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def string_terminal(parameter: Parameter, never: Sequence[str]) -> str:
    """The strings that a parameter may be.

    Args:
        parameter: What to write; some of it is a string.
        never: Marks that would end the text, so no string may have them in it.

    Raises:
        InvalidRequest: There is no such string, or a condition that cannot be expressed.
    """
    return _strings(parameter, never, [])


def text_terminal(parameter: Parameter, never: Sequence[str]) -> tuple[str, list[Schema]]:
    """All that a parameter may be, where only its look tells its type.

    Args:
        parameter: What to write; some of it is a string.
        never: As for `string_terminal`.

    Returns:
        A terminal, and schemas of the values that it leaves out. No string begins like their JSON,
        so that the first character decides.

    Raises:
        InvalidRequest: As for `string_terminal`.
    """
    terminals: list[str] = []
    looks: list[str] = []
    rest: list[Schema] = []
    for schema in parameter.others:
        scalars = _scalars(schema)
        terminals += scalars
        rest += [] if scalars else [schema]
        looks.append(_LOOKS[kind(schema)] if scalars else _BEGINNINGS[kind(schema)] + _ANY)
    return " | ".join([*terminals, _strings(parameter, never, looks)]), rest


def _scalars(schema: Schema) -> list[str]:
    """Terminals of a scalar type's values; none where it has conditions, or is no scalar type."""
    named = kind(schema)
    if "enum" in schema and named in _SCALARS:
        return [quoted(json.dumps(value)) for value in schema["enum"]]
    plain = schema.keys() - NOTES <= {"type"} or named in ("null", "boolean")
    return [f"/{_SCALARS[named]}/"] if plain and named in _SCALARS else []


def _strings(parameter: Parameter, never: Sequence[str], looks: Sequence[str]) -> str:
    terminals: list[str] = []
    for schema in parameter.texts:
        unsupported = next((key for key in _UNSUPPORTED if key in schema), None)
        if unsupported is not None:
            raise parameter.fault(f"{unsupported!r} is not supported for strings")
        fixed = "enum" in schema
        terminals += _fixed(schema, never, looks) if fixed else [_free(parameter, schema, looks)]
    if not terminals:
        raise parameter.fault("none of its strings can be written")
    marks = "|".join(map(_literal, never))
    return f"({' | '.join(terminals)}) & ~/{_ANY}({marks}){_ANY}/"


def _fixed(schema: Schema, never: Sequence[str], looks: Sequence[str]) -> list[str]:
    return [
        quoted(text)
        for text in schema["enum"]
        if not any(mark in text for mark in never)
        and not any(re.fullmatch(look, text) for look in looks)
    ]


def _free(parameter: Parameter, schema: Schema, looks: Sequence[str]) -> str:
    most = schema.get("maxLength", "")
    terminal = f"/(?s:.{{{schema.get('minLength', 0)},{most}}})/"
    if "pattern" in schema:
        terminal += f" & /{_found(parameter, schema['pattern'])}/"
    return terminal + "".join(f" & ~/{look}/" for look in looks)


def _found(parameter: Parameter, pattern: str) -> str:
    """A pattern of all texts in which a pattern is found."""
    branches: list[list[str]] = [[]]
    depth = 0
    for token in _TOKEN.findall(pattern):
        depth += (token == "(") - (token == ")")
        if token == "|" and depth == 0:
            branches.append([])
        else:
            branches[-1].append(token)
    return "|".join(_found_branch(parameter, branch) for branch in branches)


def _found_branch(parameter: Parameter, branch: list[str]) -> str:
    begun, ended = branch[:1] == ["^"], branch[-1:] == ["$"]
    inner = branch[int(begun) : len(branch) - int(ended)]
    if "^" in inner or "$" in inner:
        raise parameter.fault("its pattern has an anchor within")
    text = "".join(map(_slashed, inner))
    return f"{'' if begun else _ANY}({text}){'' if ended else _ANY}"


def _slashed(token: str) -> str:
    """A part of a pattern as it stands between slashes."""
    return re.sub(r"(\\.)|/", lambda found: found[1] or r"\/", token).replace("\n", r"\n")


def _literal(text: str) -> str:
    """A pattern of just this text."""
    escaped = re.sub(r"[\\.+*?()|\[\]{}^$/]", r"\\\g<0>", text)
    return escaped.replace("\n", r"\n")
