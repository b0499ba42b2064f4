"""TOML files, with their comments and their order."""

import tomllib
from collections.abc import Mapping, MutableMapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from mtplx_cli.connecting.agent import CannotMerge, Settings
from mtplx_cli.connecting.merging import merged


class TomlFormat:
    """TOML."""

    def show(self, settings: Settings) -> str:
        """Write settings down, as a file of its own."""
        return tomlkit.dumps(merged(None, settings))

    def merge(self, text: str, settings: Settings) -> str:
        """Put settings into a file and keep everything else that it holds."""
        try:
            old = tomllib.loads(text)
            document = tomlkit.parse(text)
        except (TOMLKitError, ValueError) as error:
            raise CannotMerge(f"it is not valid TOML 1.0: {error}") from None
        except RecursionError:
            raise CannotMerge("it is nested too deeply") from None
        new = merged(old, settings)
        try:
            _update(document, new)
            result = tomlkit.dumps(document)
            kept = _same(tomllib.loads(result), new)
        except (TOMLKitError, ValueError, RecursionError):
            kept = False
        if not kept:
            raise CannotMerge("its tables are laid out in a way that cannot be added to")
        return result


def _update(table: MutableMapping[str, Any], values: Mapping[str, Any]) -> None:
    for key in [key for key in table if key not in values]:
        del table[key]
    for key, value in values.items():
        old = table.get(key)
        if isinstance(value, Mapping) and isinstance(old, MutableMapping):
            _update(old, value)
        elif not _same(old, value):
            table[key] = value


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; unlike `==`, nan is nan."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other or (one != one and other != other))
