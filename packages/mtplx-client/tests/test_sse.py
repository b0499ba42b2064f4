"""The event decoder gives the same events however the bytes are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtplx_client._sse import EventDecoder, ServerEvent

LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))
EVENT = st.builds(ServerEvent, st.lists(LINE, min_size=1).map("\n".join), LINE)
LINE_END = st.sampled_from(["\n", "\r\n", "\r"])


def decode(pieces: list[bytes]) -> list[ServerEvent]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@given(st.lists(EVENT, max_size=5), LINE_END, st.booleans(), st.data())
def test_what_was_written_is_read_at_any_split(events, line_end, mark, data):
    lines = []
    for event in events:
        lines.append(": a comment")
        lines += [f"event: {event.event}"] if event.event else []
        lines += [f"data: {line}" for line in event.data.split("\n")]
        lines.append("")
    text = "".join(line + line_end for line in lines)
    # A last carriage return could still be half of a line end; any byte after it settles that.
    raw = (("\ufeff" if mark else "") + text + ":").encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(raw)))))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert decode(pieces) == events


@pytest.mark.parametrize(
    ("raw", "events"),
    [
        (b"data: x\n", []),
        (b"data: x\n\n", [ServerEvent("x")]),
        (b"data:x\n\ndata:  y\n\n", [ServerEvent("x"), ServerEvent(" y")]),
        (b"event: gone\n\ndata: x\n\n", [ServerEvent("x")]),
        (b"data\n\n", [ServerEvent("")]),
        (b"id: 1\nretry: 5\nunknown: z\ndata: x\n\n", [ServerEvent("x")]),
        (b"\n\n\n: only comments\n\n", []),
        (b"data: \xff\n\n", [ServerEvent("\ufffd")]),
    ],
)
def test_the_rules_of_the_format(raw, events):
    assert decode([raw]) == events
