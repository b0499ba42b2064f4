"""Bounds and divisors of numbers, as far as they can be kept exactly.

Behind us, bounds are doubles, divisors are decimal fractions of 32 bits, and an open bound at an
integer is taken for closed when the other bound is less than one away from it.
"""

import math
from fractions import Fraction
from typing import Any

from mtplx_engine.chat.json_schema.place import Place

_EXACT = 2**53
_MOST_DIGITS = 8  # of a divisor: room for ten times it in 32 bits
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")

Number = int | float


def exact(value: Any, place: Place) -> Number:
    """A number as it is compared with behind us; integers as such.

    Raises:
        InvalidRequest: It is none, or another number would be compared with.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.fault(f"it must be a number, not {type(value).__name__}")
    if abs(value) > _EXACT:
        raise place.fault("numbers beyond 2**53 cannot be told apart")
    return int(value) if value == int(value) else value


class Numbers:
    """The numeric keywords of all schemas of one request."""

    def __init__(self) -> None:
        self._open: list[tuple[Number, Place]] = []  # open bounds at integers
        self._bounds: list[Number] = []
        self._divisors: list[tuple[Fraction, Place]] = []

    def constraint(
        self, schema: dict[str, Any], kinds: frozenset[str], place: Place
    ) -> dict[str, Any]:
        """The numeric keywords of one schema, in the form of the latest draft.

        Raises:
            InvalidRequest: One of them is wrong or cannot be kept.
        """
        out = {key: value for key, value in schema.items() if key in (*_BOUNDS, "multipleOf")}
        for name, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            # In draft 4 it says whether the plain bound is open.
            if isinstance(out.get(name), bool) and out.pop(name) and plain in out:
                out[name] = out.pop(plain)
        for name, value in out.items():
            out[name] = exact(_nearer(name, value), place.key(name))
        own = Numbers()
        for collected in (self, own) if "number" in kinds else ():
            collected._collect(out, place)
        own.check()
        if "multipleOf" in out:
            self._divisors.append((_divisor(out["multipleOf"], place.key("multipleOf")), place))
        return out

    def check(self) -> None:
        """Make sure that all of them may meet in one number.

        Raises:
            InvalidRequest: They could not be kept.
        """
        for value, place in self._open:
            if any(0 < abs(value - bound) < 1 for bound in self._bounds):
                raise place.fault("an open bound less than 1 away from another is not supported")
        scale = max((divisor.denominator for divisor, _ in self._divisors), default=1)
        common = 1
        for divisor, place in self._divisors:
            scaled = int(divisor * scale)
            if common * scaled >= 2**32 or math.lcm(common, scaled) >= 10**_MOST_DIGITS:
                raise place.key("multipleOf").fault("too many different divisors")
            common = math.lcm(common, scaled)

    def _collect(self, out: dict[str, Number], place: Place) -> None:
        for name in _BOUNDS:
            if name in out:
                self._bounds.append(out[name])
                if name.startswith("exclusive") and isinstance(out[name], int):
                    self._open.append((out[name], place.key(name)))


def _nearer(name: str, value: Any) -> Any:
    """A bound beyond the exact numbers, in front of them all, becomes the first of them."""
    if isinstance(value, int | float) and abs(value) > _EXACT:
        if name.lower().endswith("minimum") and value < 0:
            return -_EXACT
        if name.lower().endswith("maximum") and value > 0:
            return _EXACT
    return value


def _divisor(value: Number, place: Place) -> Fraction:
    """The divisor that is found behind us, which multiplies by ten until nothing is left over."""
    if value <= 0:
        raise place.fault("multipleOf must be greater than 0")
    scaled, digits = float(value), 0
    while scaled != int(scaled) and digits <= _MOST_DIGITS:
        scaled, digits = scaled * 10, digits + 1
    found = Fraction(int(scaled), 10**digits)
    if digits > _MOST_DIGITS or scaled >= 10**_MOST_DIGITS or found != Fraction(str(value)):
        raise place.fault(f"multiples of {value} cannot be told exactly")
    return found
