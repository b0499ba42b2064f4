import itertools

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
