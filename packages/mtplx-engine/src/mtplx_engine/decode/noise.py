"""Randomness of a request: every draw is a pure function of (seed, position, purpose).

There is no generator state, so what a position draws does not depend on how many drafts came
before it, on other requests, or on where a round began. This is what makes a seeded answer the
same with and without drafting.
"""

import enum

from mtplx_engine.backend import mx

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15  # splitmix64's increment
_HALF_STEP = 2.0**-33


class Purpose(enum.IntEnum):
    """What a draw is for. Draws of different purposes are independent."""

    TOKEN = 1
    DRAFT = 2
    ACCEPT = 3
    XTC = 4


def _mix(x: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class Noise:
    """The random numbers of one answer.

    Args:
        seed: Of the request.
        choice: Which of several answers to one request; their numbers are independent.
    """

    def __init__(self, seed: int, choice: int = 0) -> None:
        self._seed = _mix((seed + choice * _GOLDEN) & _MASK) if choice else seed & _MASK

    def _key(self, position: int, purpose: Purpose) -> mx.array:
        mixed = _mix(self._seed)
        for part in (position, purpose):
            mixed = _mix((mixed + (part + 1) * _GOLDEN) & _MASK)
        key: mx.array = mx.random.key(mixed)
        return key

    def gumbel(self, position: int, count: int, purpose: Purpose) -> mx.array:
        """(count,) float32 Gumbel noise for the token at an absolute position.

        g = -log(-log(1 - u)). Large g come from small u, and there a float32 made from 32 random
        bits is finest (MLX divides the bits by 2**32), so rare tokens keep their true chance; near
        one it is 256 times coarser. u = 0 would give +infinity and so a token at random; it is
        moved to half the smallest step.
        """
        uniform = mx.random.uniform(shape=(count,), key=self._key(position, purpose))
        return -mx.log(-mx.log1p(-mx.maximum(uniform, _HALF_STEP)))

    def uniform(self, position: int, purpose: Purpose) -> mx.array:
        """A float32 scalar in [0, 1)."""
        return mx.random.uniform(key=self._key(position, purpose))
