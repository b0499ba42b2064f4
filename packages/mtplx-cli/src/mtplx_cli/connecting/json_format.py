"""JSON files. What cannot be kept, as comments, is a reason to refuse."""

import json
import re
from decimal import Decimal
from typing import Any

from mtplx_cli.connecting.agent import CannotMerge, Settings
from mtplx_cli.connecting.merging import merged

_EXTRAS = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_INDENT = re.compile(r"\s*\{\s*?\n([ \t]+)\S")
_SHOWN_DIGITS = 40


class JsonFormat:
    """JSON, indented as the file was."""

    def show(self, settings: Settings) -> str:
        """Write settings down, as a file of its own."""
        return _dump(merged(None, settings), "  ", ascii_only=False)

    def merge(self, text: str, settings: Settings) -> str:
        """Put settings into a file and keep everything else that it holds."""
        try:
            return _merge(text, settings)
        except RecursionError:
            raise CannotMerge("it is nested too deeply") from None


def _merge(text: str, settings: Settings) -> str:
    old = _load(text) if text.strip() else {}
    new = merged(old, settings)
    if new == old:
        return text
    indent = _INDENT.match(text)
    # Half a surrogate pair exists as an escape only.
    ascii_only = text.isascii() or "\\ud" in text.lower()
    return _dump(new, indent[1] if indent else "  ", ascii_only=ascii_only)


def _dump(value: Any, indent: str, *, ascii_only: bool) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=ascii_only, allow_nan=False) + "\n"


def _load(text: str) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_no_number,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if _is_json_with_extras(text):
            why = f"it has comments or trailing commas ({where}), which would be lost"
        else:
            why = f"it is not valid JSON: {where}: {error.msg}"
        raise CannotMerge(why) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise CannotMerge(f"it has the key {json.dumps(twice)} twice in one object")
    return found


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _lossy(text) from None


def _number(text: str) -> float:
    value = float(text)
    try:
        kept = Decimal(text) == Decimal(repr(value))
    except ArithmeticError:
        kept = False
    if not kept:
        raise _lossy(text)
    return value


def _no_number(text: str) -> float:
    raise CannotMerge(f"it is not valid JSON: {text} is no number there")


def _lossy(text: str) -> CannotMerge:
    shown = text if len(text) <= _SHOWN_DIGITS else f"{text[:_SHOWN_DIGITS]}…"
    return CannotMerge(f"its number {shown} is larger or longer than could be kept")


def _is_json_with_extras(text: str) -> bool:
    plain = _TRAILING_COMMA.sub(_keep_string, _EXTRAS.sub(_keep_string, text))
    try:
        json.loads(plain)
    except ValueError:
        return False
    return True


def _keep_string(found: re.Match[str]) -> str:
    return found[1] or " "
