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
        return tomlkit.dumps(settings)

    def merge(self, text: str, settings: Settings) -> str:
        """Put settings into a file and keep everything else that it holds."""
        try:
            document = tomlkit.parse(text)
        except TOMLKitError as error:
            raise CannotMerge(f"it is not valid TOML: {error}") from None
        new = merged(document.unwrap(), settings)
        _update(document, new)
        result = tomlkit.dumps(document)
        if tomllib.loads(result) != new:
            raise CannotMerge("its tables are laid out in a way that cannot be added to")
        return result


def _update(table: MutableMapping[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        old = table.get(key)
        if isinstance(value, Mapping) and isinstance(old, MutableMapping):
            _update(old, value)
        elif old != value:
            table[key] = value
