"""Which values a file holds after settings are merged into it."""

from collections.abc import Mapping, Sequence
from typing import Any

from mtplx_cli.connecting.agent import CannotMerge, Value

_NAMING_SERVER = ("baseUrl", "envKey")


def merged(old: Any, new: Value, path: str = "") -> Any:
    """The value in place of `old`.

    Objects are merged key by key; a key whose new value is None is removed. Lists of objects with
    an `id`, in which clients keep models, are merged entry by entry. Everything else is replaced.

    Raises:
        CannotMerge: An object or list is wanted where the file holds something else, or an entry
            of the same `id` belongs to another server.
    """
    match new:
        case Mapping():
            old = _expect(old, dict, "an object", path)
            return _with_keys(old, new, path)
        case Sequence() if not isinstance(new, str):
            return _with_entries(_expect(old, list, "a list", path), new, path)
        case _:
            return new


def _expect(old: Any, kind: type, name: str, path: str) -> Any:
    if old is None:
        return kind()
    if not isinstance(old, kind):
        raise CannotMerge(f"{path.removeprefix('.') or 'the whole file'} is not {name}")
    return old


def _with_keys(old: dict[str, Any], new: Mapping[str, Any], path: str) -> dict[str, Any]:
    result = dict(old)
    for key, value in new.items():
        found = merged(old.get(key), value, f"{path}.{key}")
        if value is None:
            result.pop(key, None)
        elif found != {} or key in old:
            result[key] = found
    return result


def _with_entries(old: list[Any], new: Sequence[Any], path: str) -> list[Any]:
    ours = {entry["id"]: entry for entry in new}
    result = []
    for number, entry in enumerate(old):
        if (wanted := ours.get(_id(entry))) and not _same_server(entry, wanted):
            where = f"{path.removeprefix('.')}[{number}]"
            raise CannotMerge(
                f"{where} is a model of the same name, {wanted['id']!r}, at another server"
            )
        result.append(merged(entry, wanted, f"{path}[{number}]") if wanted else entry)
    held = {_id(entry) for entry in old}
    return [*result, *(merged(None, entry) for name, entry in ours.items() if name not in held)]


def _same_server(entry: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether they agree in a key that names the server; without any, the list is of one server."""
    naming = [key for key in _NAMING_SERVER if key in wanted]
    return not naming or any(entry.get(key) == wanted[key] for key in naming)


def _id(entry: Any) -> Any:
    found = entry.get("id") if isinstance(entry, dict) else None
    return found if isinstance(found, str) else None
