"""Sizes as people write them: `512MiB`, `8G`, `1.5 GB`."""

import re

_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b?)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(text: str) -> int:
    """Bytes. Units count in steps of 1024, or of 1000 where they end in a plain `B`.

    Raises:
        ValueError: It is no size; the message says what is.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write it like 512MiB, 8GiB or 8G.")
    number, unit, suffix = match.groups()
    step = 1000 if suffix.lower() == "b" and unit else 1024
    return int(float(number) * step ** _POWERS[unit.lower()])


def show_size(size: int) -> str:
    """A size for people."""
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= step:
            return f"{size / step:.3g} {unit}" if size < 1000 * step else f"{size // step} {unit}"
    return f"{size} bytes"
