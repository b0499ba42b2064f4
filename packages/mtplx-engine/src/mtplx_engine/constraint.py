"""What an answer's form may be, and the state of one answer that has to keep to it.

A `Grammar` is a plain value that a request carries. A `ConstraintFactory`, one per model, turns it
into a `Constraint`, which tells a decoder token by token what may come next. A decoder that drafts
advances the state along its guesses and rolls it back to what was accepted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """The answer is JSON that this schema accepts.

    Attributes:
        schema: In JSON Schema.
        where: What errors call it.
    """

    schema: Mapping[str, Any]
    where: str = "grammar"


@dataclass(frozen=True, slots=True)
class JsonObject:
    """The answer is a JSON object, whatever it holds."""


@dataclass(frozen=True, slots=True)
class Regex:
    """The whole answer matches this pattern, in the syntax of Rust's `regex`.

    Attributes:
        pattern: The pattern.
        where: What errors call it.
    """

    pattern: str
    where: str = "grammar"


@dataclass(frozen=True, slots=True)
class Lark:
    """The answer is derived from the rule `start` of this grammar, in the syntax of Lark.

    Attributes:
        grammar: The rules.
        where: What errors call it.
    """

    grammar: str
    where: str = "grammar"


@dataclass(frozen=True, slots=True)
class Composed:
    """Rules in Lark, whose rule `start` refers to further grammars as `@name`.

    Attributes:
        lark: As llguidance reads it: tokens are written by their ids, `<[7]>`.
        parts: The further grammars, by name.
    """

    lark: str
    parts: "Mapping[str, Grammar]"


Grammar = JsonSchema | JsonObject | Regex | Lark | Composed


class Constraint(Protocol):
    """The state of one answer. Not thread-safe, but any thread may take it over.

    An end token may come exactly when the answer may end. It finishes the answer; after it, only
    end tokens are allowed.
    """

    def allowed(self) -> NDArray[np.bool_]:
        """(V,) which tokens may come next; at least one. Read-only.

        Raises:
            InvalidRequest: The grammar leads to a place with no way on, or is too complex.
        """

    def advance(self, token: int) -> None:
        """Append a token, drafted or emitted.

        Raises:
            ValueError: It is not allowed here. The state is what it was before.
            InvalidRequest: The grammar is too complex.
        """

    def roll_back(self, count: int) -> None:
        """Undo the last `count` advances.

        Raises:
            ValueError: There were not so many.
        """

    def copy(self) -> "Constraint":
        """Another answer in the same state; much cheaper than to make one anew."""

    def forced(self, most: int) -> list[int]:
        """The next tokens without a choice, in order, at most `most`; none when there is a choice.

        Each is the only one allowed after those before it. The state stays what it is.

        Raises:
            InvalidRequest: As for `allowed`.
        """


class ConstraintFactory(Protocol):
    """Makes constraints over one model's vocabulary."""

    def make(self, grammar: Grammar) -> Constraint:
        """The state before the first token of an answer.

        Takes milliseconds, for large grammars up to a second: not for the event loop.

        Raises:
            InvalidRequest: The grammar is wrong or accepts nothing; the message says what.
        """
