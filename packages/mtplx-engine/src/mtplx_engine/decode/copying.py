"""Drafts copied from earlier text that recurs: prompt lookup.

An answer that repeats a part of its prompt, as an edited file does, can be drafted by copying what
followed the last time. The source is the longest earlier match of the text's end. It is found as in
LZ77 compressors: a chain through all places where the last few tokens stood before, newest first.
That costs one dictionary entry per token, where a suffix automaton would find the same match at
many times the memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHORTEST = 3  # tokens; shorter matches are mostly coincidence
LONGEST = 64  # tokens; counting further would not make a copy more reliable
# Places looked at per proposal. Only a triple that recurs more often than this, like a line break
# and an indentation, can have a longer match that is missed, and a token later it is found.
_PLACES = 256


@dataclass(frozen=True, slots=True)
class Copy:
    """A guess at how the text goes on.

    Attributes:
        tokens: As many as were asked for.
        matched: How many tokens before the source equal the text's end: from `SHORTEST` to
            `LONGEST`, where it stops counting.
    """

    tokens: tuple[int, ...]
    matched: int


class NgramIndex:
    """Finds where the end of one growing text stood before."""

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        self._tokens: list[int] = []
        # Places are indices of a token that follows a triple. None is below SHORTEST, so 0 is free
        # to mean that there is no place.
        self._newest: dict[tuple[int, int, int], int] = {}
        self._older: list[int] = []  # by place: the one before with the same triple
        self._distance = 0  # from the last copy's source to the text's end; 0: no copy yet
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append to the text what was read or emitted; never what was only drafted."""
        text, newest, older = self._tokens, self._newest, self._older
        for token in tokens:
            place = len(text)
            if place >= SHORTEST:
                triple = (text[-3], text[-2], text[-1])
                older.append(newest.get(triple, 0))
                newest[triple] = place
            else:
                older.append(0)
            text.append(token)

    def propose(self, most: int) -> Copy | None:
        """Copy what followed the longest earlier match of the text's end.

        Of equally long matches, the one that goes on where the last copy came from is taken, so
        that a run of copies keeps to its source; otherwise the most recent.

        Args:
            most: How many tokens to guess. A match so recent that the text ends sooner is taken
                to repeat itself.

        Returns:
            Exactly `most` tokens; None if that is less than one or nothing matches.
        """
        if most < 1:
            return None
        source = matched = 0
        for place in self._places():
            reach = self._reach(place, matched)
            if reach > matched:
                source, matched = place, reach
            if matched == LONGEST:
                break
        if matched < SHORTEST:
            return None
        self._distance = len(self._tokens) - source
        period = self._tokens[source : source + most]
        rounds = -(-most // len(period))
        return Copy(tuple((period * rounds)[:most]), matched)

    def _places(self) -> Iterator[int]:
        """Where the text's end may have stood before: as the last copy has it, then by age."""
        if self._distance:
            yield len(self._tokens) - self._distance
        if len(self._tokens) < SHORTEST:
            return
        place = self._newest.get((self._tokens[-3], self._tokens[-2], self._tokens[-1]), 0)
        for _ in range(_PLACES):
            if not place:
                return
            yield place
            place = self._older[place]

    def _reach(self, place: int, beaten: int) -> int:
        """How far back the text before a place equals its end; 0 if no further than `beaten`."""
        text, size = self._tokens, len(self._tokens)
        limit = min(place, LONGEST)
        if beaten >= limit or text[place - beaten - 1] != text[size - beaten - 1]:
            return 0
        reach = 0
        while reach < limit and text[place - reach - 1] == text[size - reach - 1]:
            reach += 1
        return reach
