"""YAML files: only new ones are written."""

import json
from collections.abc import Iterator, Mapping, Sequence

from mtplx_cli.connecting.agent import CannotMerge, Settings, Value


class YamlFormat:
    """YAML, with each scalar in the form that JSON gives it."""

    def show(self, settings: Settings) -> str:
        """Write settings down, as a file of its own."""
        return "".join(f"{line}\n" for line in _lines(settings))

    def merge(self, text: str, settings: Settings) -> str:
        """Put settings into an empty file; another one is not changed."""
        whole = self.show(settings)
        if text.strip() and text != whole:
            raise CannotMerge("a YAML file that exists is not changed")
        return whole


def _lines(value: Value) -> Iterator[str]:
    match value:
        case Mapping():
            for key, inner in value.items():
                if isinstance(inner, Mapping | Sequence) and not isinstance(inner, str):
                    yield f"{key}:"
                    yield from (f"  {line}" for line in _lines(inner))
                else:
                    yield f"{key}: {json.dumps(inner)}"
        case Sequence() if not isinstance(value, str):
            for entry in value:
                first, *rest = _lines(entry)
                yield f"- {first}"
                yield from (f"  {line}" for line in rest)
        case _:
            yield json.dumps(value)
