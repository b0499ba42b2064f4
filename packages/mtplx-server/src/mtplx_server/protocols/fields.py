"""What becomes of the fields of a request. Each surface has one table for code, tests and docs.

    honoured    has its effect: every field that the wire model declares
    harmless    cannot change the answer; accepted
    ignored     has no effect here; accepted, and named in the reply's `mtplx.ignored_fields`
    refused     a 400 that names it, except for values that ask for what is done anyway

A field that is in no table is treated as `ignored`. `null` is the same as an absent field.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mtplx_client.wire.base import WireRequest
from mtplx_server.errors import bad_request
from mtplx_server.protocols.wire_docs import described

Treatment = Literal["honoured", "harmless", "ignored", "refused"]

_MOST_NAMED = 100
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Field:
    """One field.

    Attributes:
        name: Its name in the body.
        treatment: What becomes of it.
        note: One sentence for the docs.
        neutral: Values that ask for what is done anyway; these are always accepted.
    """

    name: str
    treatment: Treatment
    note: str = ""
    neutral: tuple[Any, ...] = ()

    def is_neutral(self, value: Any) -> bool:
        """Whether a value asks for what is done anyway. True is not 1 here."""
        return any(
            value == each and isinstance(value, bool) == isinstance(each, bool)
            for each in self.neutral
        )


class FieldTable:
    """All that is known of one surface's fields.

    Attributes:
        fields: By name; the honoured ones come from the wire model.
    """

    def __init__(self, wire: type[WireRequest], others: Iterable[Field]) -> None:
        honoured = [Field(name, "honoured", note) for name, note in described(wire).items()]
        self.fields = {field.name: field for field in (*honoured, *others)}

    def ignored(self, body: Mapping[str, Any]) -> list[str]:
        """Names of those undeclared fields of a body that have no effect.

        Raises:
            RequestRefused: A field is refused, by the table.
        """
        ignored = []
        for name, value in body.items():
            field = self.fields.get(name, Field(name, "ignored"))
            if value is None or field.is_neutral(value):
                continue
            if field.treatment == "refused":
                _refuse(field)
            if field.treatment == "ignored":
                ignored.append(name)
        return ignored

    def markdown(self) -> str:
        """The table as it stands in `docs/protocols/`."""
        rows = ["| field | treatment | always accepted | note |", "|---|---|---|---|"]
        for field in self.fields.values():
            values = ", ".join(f"`{json.dumps(value)}`" for value in field.neutral)
            rows.append(f"| `{field.name}` | {field.treatment} | {values} | {field.note} |")
        return "\n".join(rows) + "\n"


def _refuse(field: Field) -> None:
    if not field.neutral:
        message = f"{field.name} is not supported. {field.note}"
        raise bad_request(message, param=field.name, code="unsupported_parameter")
    values = " or ".join(json.dumps(value) for value in field.neutral)
    message = f"{field.name} may only be {values}. {field.note}"
    raise bad_request(message, param=field.name, code="unsupported_value")


def extra(model: WireRequest) -> dict[str, Any]:
    """The fields that a model does not declare."""
    return model.model_extra or {}


def meaningful(model: WireRequest) -> Iterable[str]:
    """Undeclared fields that say something; SDKs echo messages with empty ones."""
    return (name for name, value in extra(model).items() if says_something(value))


def unread(model: WireRequest, read: Collection[str]) -> Iterable[str]:
    """Fields that say something and are not among those that are read.

    For a model that stands for several kinds, of which each has a use for some of its fields.
    """
    declared = {name: getattr(model, name) for name in type(model).model_fields}
    given = declared | extra(model)
    return (name for name, value in given.items() if name not in read and says_something(value))


def says_something(value: Any) -> bool:
    """Whether a value is more than a way to leave a field out. 0 is not False here."""
    return not (value is None or value is False or value == [] or value == {})


def each_once(names: Iterable[str]) -> list[str]:
    """Names without repetitions, and neither more nor longer than anybody would read."""
    unique = list(dict.fromkeys(name[:_LONGEST_NAME] for name in names))
    if len(unique) > _MOST_NAMED:
        unique = [*unique[:_MOST_NAMED], f"... and {len(unique) - _MOST_NAMED} more"]
    return unique


def check_strict(ignored: list[str]) -> None:
    """Refuse fields without effect, for servers that are strict about them.

    Raises:
        RequestRefused: There are some.
    """
    if ignored:
        message = f"{', '.join(ignored)} would have no effect (strict_fields is on)."
        raise bad_request(message, param=ignored[0], code="unsupported_parameter")
