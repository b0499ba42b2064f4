import itertools

from hypothesis import given
from hypothesis import strategies as st

from mtplx_engine.decode.stopping import StopMatcher

texts = st.text(alphabet="ab\u00e9\n", max_size=30)
stops = st.lists(st.text(alphabet="ab\u00e9", min_size=1, max_size=4), max_size=3)


def by_definition(text: str, stop_strings: list[str]) -> tuple[str, str | None]:
    """Look after every character; the longest of the stop strings complete there counts."""
    for end in range(1, len(text) + 1):
        complete = [s for s in stop_strings if text[:end].endswith(s)]
        if complete:
            hit = max(complete, key=len)
            return text[: end - len(hit)], hit
    return text, None


def run(pieces: list[str], stop_strings: list[str]) -> tuple[str, str | None]:
    matcher = StopMatcher(stop_strings)
    out = ""
    for piece in pieces:
        out += matcher.feed(piece)
        if matcher.hit is not None:
            return out, matcher.hit
    return out + matcher.close(), None


@given(texts, stops, st.data())
def test_any_split_gives_what_the_definition_says(
    text: str, stop_strings: list[str], data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    edges = [0, *cuts, len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert run(pieces, stop_strings) == by_definition(text, stop_strings)


@given(texts, stops)
def test_nothing_is_held_that_could_not_become_a_stop(text: str, stop_strings: list[str]) -> None:
    matcher = StopMatcher(stop_strings)
    out = matcher.feed(text)
    if matcher.hit is None:
        held = text[len(out) :]
        assert held == "" or any(s.startswith(held) and s != held for s in stop_strings)


def test_the_string_that_is_complete_first_wins() -> None:
    assert run(["abc"], ["abc", "b"]) == ("a", "b")
    assert run(["x", "ab", "y"], ["xab", "ab"]) == ("", "xab")
