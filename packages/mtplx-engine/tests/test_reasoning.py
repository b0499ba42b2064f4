import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtplx_engine.chat.reasoning import ReasoningMarkers, ReasoningSplitter, ReasoningStart
from mtplx_engine.events import ReasoningDelta, TextDelta

MARKERS = ReasoningMarkers("<think>", "</think>")
fragments = st.sampled_from(["<think>", "</think>", "<", "think>", "</", " ", "\n\n", "a", "b c"])
texts = st.lists(fragments, max_size=12).map("".join)


def split(pieces: list[str], *, starts_open: bool) -> tuple[str, str]:
    splitter = ReasoningSplitter(ReasoningStart(MARKERS, starts_open))
    deltas = [delta for piece in pieces for delta in splitter.feed(piece)] + splitter.close()
    assert all(delta.text for delta in deltas)
    return (
        "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)),
        "".join(d.text for d in deltas if isinstance(d, TextDelta)),
    )


@given(texts, st.booleans(), st.data())
def test_any_split_gives_the_same(text: str, starts_open: bool, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    edges = [0, *cuts, len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert split(pieces, starts_open=starts_open) == split([text], starts_open=starts_open)


def test_what_is_thought_and_what_is_said() -> None:
    assert split(["<think>\nhm\n</think>\n\nyes"], starts_open=False) == ("hm", "yes")
    assert split(["hm\n</think>\n\nyes "], starts_open=True) == ("hm", "yes ")
    assert split(["never closed "], starts_open=True) == ("never closed", "")
    assert split(["plain < text\n"], starts_open=False) == ("", "plain < text\n")
    assert split(["<think>a</think>b<think>c</think>d"], starts_open=False) == ("ac", "bd")


def test_only_the_end_of_the_prompt_opens_a_block() -> None:
    assert MARKERS.opened_by("<|im_start|>assistant\n<think>\n")
    assert not MARKERS.opened_by("write <think> before you think")
    assert not MARKERS.opened_by("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def events_once(pieces: list[str], *, is_open: bool) -> tuple[str, str]:
    splitter = ReasoningSplitter(ReasoningStart(MARKERS, is_open, once=True))
    deltas = [delta for piece in pieces for delta in splitter.feed(piece)] + splitter.close()
    return tuple(
        "".join(delta.text for delta in deltas if isinstance(delta, kind))
        for kind in (ReasoningDelta, TextDelta)
    )


@pytest.mark.parametrize(
    ("text", "is_open", "reasoning", "answer"),
    [
        ("a<think>b</think>c", False, "", "a<think>b</think>c"),
        ("<think>b</think>\n c<think>d</think> ", False, "b", "c<think>d</think> "),
        (" \n<think>b</think>c", False, "b", "c"),
        ("b</think>c</think><think>d", True, "b", "c</think><think>d"),
        ('{"a": "<think>"}', False, "", '{"a": "<think>"}'),
        ("b", True, "b", ""),
    ],
)
def test_under_a_grammar_only_the_first_block_counts(text, is_open, reasoning, answer):
    for cut in range(len(text) + 1):
        assert events_once([text[:cut], text[cut:]], is_open=is_open) == (reasoning, answer)
    assert events_once(list(text), is_open=is_open) == (reasoning, answer)


def test_under_a_grammar_a_closed_block_is_the_only_one():
    start = ReasoningStart(MARKERS, is_open=False, is_closed=True, once=True)
    splitter = ReasoningSplitter(start)
    assert splitter.feed("<think>b</think>c") == [TextDelta("<think>b</think>c")]
