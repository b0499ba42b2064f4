"""Copies against a brute-force search, and what they are worth on an edited file."""

import json.encoder
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtplx_engine.decode.copying import LONGEST, SHORTEST, Copy, NgramIndex

few_tokens = st.lists(st.integers(0, 2), max_size=150)


def common_end(text: list[int], place: int) -> int:
    count = 0
    while count < min(place, LONGEST) and text[place - 1 - count] == text[-1 - count]:
        count += 1
    return count


def copy_from(text: list[int], place: int, most: int) -> tuple[int, ...]:
    grown = list(text)
    for index in range(most):
        grown.append(grown[place + index])
    return tuple(grown[len(text) :])


def brute_force(text: list[int], most: int) -> Copy | None:
    """Try every place; the longest match wins, then the latest."""
    reaches = [(common_end(text, place), place) for place in range(1, len(text))]
    matched, place = max(reaches, default=(0, 0))
    return Copy(copy_from(text, place, most), matched) if matched >= SHORTEST else None


@given(few_tokens, st.integers(1, 20))
def test_a_fresh_index_copies_after_the_longest_then_latest_match(
    text: list[int], most: int
) -> None:
    assert NgramIndex(text).propose(most) == brute_force(text, most)


@given(few_tokens, st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), max_size=20))
def test_a_growing_index_finds_a_longest_match(text: list[int], runs: list[list[int]]) -> None:
    index = NgramIndex(text)
    grown = list(text)
    for run in runs:
        index.extend(run)
        grown += run
        copy, expected = index.propose(8), brute_force(grown, 8)
        assert (copy and copy.matched) == (expected and expected.matched)
        if copy is not None:
            places = [p for p in range(1, len(grown)) if common_end(grown, p) == copy.matched]
            assert copy.tokens in [copy_from(grown, place, 8) for place in places]


@given(few_tokens, st.integers(0, 150))
def test_extending_equals_building_at_once(text: list[int], at: int) -> None:
    index = NgramIndex(text[:at])
    index.extend(text[at:])
    assert index.propose(9) == NgramIndex(text).propose(9)


@pytest.mark.parametrize("text", [[], [1], [1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 9, 1, 2]])
def test_nothing_to_copy(text: list[int]) -> None:
    assert NgramIndex(text).propose(4) is None


@pytest.mark.parametrize("most", [0, -1])
def test_nothing_asked_for(most: int) -> None:
    assert NgramIndex([1] * 9).propose(most) is None


def test_a_repetition_goes_on_for_as_long_as_asked() -> None:
    assert NgramIndex([7, *[1, 2] * 3]).propose(9) == Copy((1, 2, 1, 2, 1, 2, 1, 2, 1), 4)
    assert NgramIndex([5] * 100).propose(6) == Copy((5,) * 6, LONGEST)


def test_a_run_of_copies_keeps_to_its_source() -> None:
    """Two sources are the same for longer than matches are counted, then they differ."""
    common = list(range(100, 100 + 2 * LONGEST))
    first, second = [1, 2, 3, *common, 11, 12], [4, 5, 6, *common, 21, 22]
    index = NgramIndex([*first, *second, 1, 2, 3])
    answer: list[int] = []
    while len(answer) < len(common):
        copy = index.propose(8)
        assert copy is not None
        index.extend(copy.tokens)
        answer += copy.tokens
    copy = index.propose(2)
    assert copy == Copy((11, 12), LONGEST)


def words(text: str) -> list[int]:
    """Token ids, about as a code tokenizer cuts: words with their space, runs of punctuation."""
    return [hash(word) for word in re.findall(r" ?\w+|\n *|[^\w\s]+| +", text)]


def file_of(count: int) -> list[int]:
    tokens = words(Path(json.encoder.__file__).read_text())
    start = 600  # past the constants
    return tokens[start : start + count]


def accepted(prompt: list[int], answer: list[int], most: int) -> int:
    """How many tokens come from copies when each round adds one token of the model's own."""
    index = NgramIndex(prompt)
    done = copied = 0
    while done < len(answer):
        copy = index.propose(min(most, len(answer) - done - 1))
        guess = copy.tokens if copy else ()
        right = next((i for i, t in enumerate(guess) if t != answer[done + i]), len(guess))
        index.extend(answer[done : done + right + 1])
        copied += right
        done += right + 1
    return copied


NEW = [-1, -2, -3, -4, -5]


@pytest.mark.parametrize(
    ("removed", "added"),
    [(1, 1), (5, 2), (0, 5), (12, 0), (0, 0)],
    ids=["renamed", "replaced", "inserted", "deleted", "unchanged"],
)
@pytest.mark.parametrize("at", [60, 200, 350])
def test_a_file_repeated_with_one_change_is_mostly_copied(
    at: int, removed: int, added: int
) -> None:
    file = file_of(400)
    fence = words("```python\n")
    prompt = [*words("Rename one thing in this file.\n"), *fence, *file, *words("```\nThe file:\n")]
    answer = [*file[:at], *NEW[:added], *file[at + removed :]]
    assert accepted([*prompt, *fence], answer, most=16) > 0.85 * len(answer)


def test_text_that_never_recurs_is_not_copied() -> None:
    assert accepted(list(range(100)), list(range(200, 300)), most=16) == 0


def test_places_without_number_are_not_all_looked_at() -> None:
    """The same triple, like a line break and an indentation, in every line of a long prompt."""
    prompt = [token for number in range(25_000) for token in (1, 2, 3, number + 10)]
    index = NgramIndex(prompt)
    for number in range(1000):
        index.extend([1, 2, 3])
        assert index.propose(16) is not None
        index.extend([-number - 1])
