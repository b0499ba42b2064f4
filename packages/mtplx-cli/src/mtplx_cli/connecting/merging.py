"""Which values a file holds after settings are merged into it."""

from collections.abc import Mapping, Sequence
from typing import Any

from mtplx_cli.connecting.agent import CannotMerge, Value


def merged(old: Any, new: Value, path: str = "") -> Any:
    """The value in place of `old`.

    Objects are merged key by key. So are lists of objects with an `id`, entry by entry: clients
    keep models in such. Everything else is replaced.

    Raises:
        CannotMerge: An object or list is wanted where the file holds something else.
    """
    match new:
        case Mapping():
            old = _expect(old, dict, "an object", path)
            return old | {key: merged(old.get(key), new[key], f"{path}.{key}") for key in new}
        case Sequence() if not isinstance(new, str):
            return _with_entries(_expect(old, list, "a list", path), new)
        case _:
            return new


def _expect(old: Any, kind: type, name: str, path: str) -> Any:
    if old is None:
        return kind()
    if not isinstance(old, kind):
        raise CannotMerge(f"{path.removeprefix('.') or 'the whole file'} is not {name}")
    return old


def _with_entries(old: list[Any], new: Sequence[Any]) -> list[Any]:
    ours = {entry["id"]: entry for entry in new}
    kept = [merged(entry, ours.pop(_id(entry))) if _id(entry) in ours else entry for entry in old]
    return [*kept, *ours.values()]


def _id(entry: Any) -> Any:
    found = entry.get("id") if isinstance(entry, dict) else None
    return found if isinstance(found, str) else None
