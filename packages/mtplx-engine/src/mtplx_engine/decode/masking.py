"""A grammar followed along one answer and along the drafts of each round."""

from collections.abc import Sequence

import numpy as np

from mtplx_engine.constraint import Constraint
from mtplx_engine.decode.law import Law


class Masking:
    """Masks the positions of a round, and takes back what the drafts did to the grammar.

    Args:
        constraint: The grammar's state; nothing of the answer is in it yet.
        end_tokens: Ids that end an answer. Nothing is masked after one.
        drafted: (V',) ids that the head drafts over; None: all.
    """

    def __init__(
        self, constraint: Constraint, end_tokens: frozenset[int], drafted: np.ndarray | None
    ) -> None:
        self._constraint = constraint
        self._end_tokens = end_tokens
        self._drafted = drafted
        self._law: Law | None = None
        self._position = 0
        self._followed = 0
        self._allowed: np.ndarray | None = None

    def begin(self, law: Law, position: int) -> None:
        """Mask the first position of a round."""
        self._law, self._position, self._followed = law, position, 0
        self._mask()

    @property
    def open_to_head(self) -> bool:
        """Whether the head can draw any token that the grammar allows next."""
        if self._allowed is None:
            return False
        allowed = self._allowed if self._drafted is None else self._allowed[self._drafted]
        return bool(allowed.any())

    def follow(self, token: int) -> None:
        """A token was drafted: mask the position after it."""
        self._constraint.advance(token)
        self._followed += 1
        if token in self._end_tokens:
            self._allowed = None
        else:
            self._mask()

    def allows(self, token: int) -> bool:
        """Whether this token may come next."""
        return self._allowed is not None and bool(self._allowed[token])

    def force(self, most: int) -> list[int]:
        """Draft the tokens that the grammar leaves no choice about."""
        forced = self._constraint.forced(most)
        for token in forced:
            self.follow(token)
        return forced

    def admit(self, tokens: Sequence[int]) -> list[int]:
        """Draft tokens up to the first that the grammar forbids."""
        admitted: list[int] = []
        for token in tokens:
            if not self.allows(token):
                break
            self.follow(token)
            admitted.append(token)
        return admitted

    def settle(self, tokens: Sequence[int], accepted: int) -> None:
        """The round emitted these tokens, of which the first `accepted` were drafts."""
        self._constraint.roll_back(self._followed - accepted)
        self._followed = 0
        if not any(token in self._end_tokens for token in tokens[:accepted]):
            self._constraint.advance(tokens[accepted])

    def _mask(self) -> None:
        assert self._law is not None
        position = self._position + self._followed
        self._allowed = self._law.allow(position, self._constraint.allowed())
