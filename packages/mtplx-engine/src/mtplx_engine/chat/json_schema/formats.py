"""Formats of strings and numbers, as constraints that a grammar keeps exactly.

llguidance has patterns for formats, but some let through what their standard forbids: the 29th of
February in any year, a leap second in any minute, names of hosts of any length. Those are ours.
"""

from typing import Any

_DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_HOUR_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
# Without leap seconds, and in upper case, which all programs can read.
_TIME = rf"{_HOUR_MINUTE}:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-]{_HOUR_MINUTE})"
# At most 63 characters. Two hyphens in third and fourth place announce another alphabet, whose
# rules are not regular.
_LABEL = (
    "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,2}[a-zA-Z0-9]"
    "|[a-zA-Z0-9-](?:[a-zA-Z0-9][a-zA-Z0-9-]|-[a-zA-Z0-9])[a-zA-Z0-9-]{0,58}[a-zA-Z0-9])?"
)

_STRINGS: dict[str, dict[str, Any]] = {
    "date": {"pattern": f"^{_DATE}$"},
    "time": {"pattern": f"^{_TIME}$"},
    "date-time": {"pattern": f"^{_DATE}T{_TIME}$"},
    "hostname": {"pattern": rf"^{_LABEL}(?:\.{_LABEL})*$", "maxLength": 253},
    "email": {"format": "email", "pattern": "^[^@]{1,64}@[^@]{1,255}$"},
    "duration": {"format": "duration"},
    "ipv4": {"format": "ipv4"},
    "ipv6": {"format": "ipv6"},
    "uuid": {"format": "uuid"},
    "uri": {"format": "uri"},
}
_SAFE = 2**53 - 1  # beyond it, neighbouring integers are the same double
_INTEGERS = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32)}
_INTEGERS |= {f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)}
_INTEGERS |= {"int64": (-_SAFE, _SAFE), "uint64": (0, _SAFE), "uint": (0, _SAFE)}
_REALS = {"float": (-_SAFE, _SAFE), "double": (-_SAFE, _SAFE)}


def constraint_of(name: object, kinds: frozenset[str]) -> dict[str, Any]:
    """Keywords that keep a value of these types to a format, in Rust's syntax of patterns.

    Formats of numbers are ranges. They may be narrower than the format, never wider.

    Raises:
        ValueError: It cannot be kept; the message says why.
    """
    if not isinstance(name, str):
        raise ValueError("format must be a string")
    if name in _STRINGS:
        if "string" not in kinds:
            raise ValueError(f"the format {name} is for strings, which type excludes")
        return _STRINGS[name]
    numeric = kinds & {"number", "integer"}
    if name in _INTEGERS and numeric == {"integer"}:
        least, most = _INTEGERS[name]
    elif name in _REALS and numeric:
        least, most = _REALS[name]
    elif name in _INTEGERS or name in _REALS:
        raise ValueError(f"the format {name} is not supported for this type")
    else:
        known = ", ".join([*_STRINGS, *_INTEGERS, *_REALS])
        raise ValueError(f"the format {name!r} is not supported; these are: {known}")
    return {"minimum": least, "maximum": most}
