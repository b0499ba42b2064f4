"""What the wire models say of their fields, for the docs and for the OpenAPI document."""

import inspect
import re

from pydantic import BaseModel

_ENTRY = re.compile(r"^    (\w+): (.*)$")


def purpose(model: type) -> str:
    """What a model is for: its docstring without the section `Attributes`."""
    return _sections(model)[0].strip()


def described(model: type[BaseModel]) -> dict[str, str]:
    """Each field of a model, by its name on the wire, with its entry in the docstring.

    Entries of base classes count, too. Empty where a field has none.
    """
    entries: dict[str, str] = {}
    for each in reversed(model.__mro__):
        entries |= _entries(each)
    return {
        field.alias or name: entries.get(name, "") for name, field in model.model_fields.items()
    }


def _entries(model: type) -> dict[str, str]:
    """The entries of the section `Attributes` of a docstring."""
    entries: dict[str, str] = {}
    name = ""
    for line in _sections(model)[1].splitlines():
        if entry := _ENTRY.match(line):
            name = entry[1]
            entries[name] = entry[2]
        elif line.startswith("        ") and name:
            entries[name] += " " + line.strip()
        else:
            break
    return entries


def _sections(model: type) -> tuple[str, str]:
    before, _, attributes = inspect.cleandoc(model.__doc__ or "").partition("\nAttributes:\n")
    return before, attributes
