"""The text file, the split, the draft vocabulary and the prompts."""

from pathlib import Path

import pytest

from mtplx_engine.errors import ModelError
from mtplx_engine.forge.draft_vocab import coverage, frequent_tokens
from mtplx_engine.forge.prompts import default_prompts, read_prompts
from mtplx_engine.forge.text import Piece, append_pieces, held_out, read_pieces


def chats(prompts: int, answers: int = 2) -> list[Piece]:
    return [Piece((9, n, 9, 50 + a), start=3) for n in range(prompts) for a in range(answers)]


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    assert read_pieces(path) == []
    append_pieces(path, chats(2))
    append_pieces(path, [Piece((1, 2, 3))])
    assert read_pieces(path) == [*chats(2), Piece((1, 2, 3))]


def test_a_line_that_a_killed_run_left_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    append_pieces(path, chats(2))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"start": 3, "ids": [1, 2')
    assert read_pieces(path) == chats(2)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"ids": 3, "start": 0}', '{"ids": ["x"]}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "text.jsonl"
    append_pieces(path, chats(1))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ModelError, match="line 3 is damaged"):
        read_pieces(path)


def test_no_prompt_is_on_both_sides() -> None:
    pieces = chats(300)
    learnt, kept = held_out(pieces, 0.05)
    assert sorted(learnt + kept) == list(range(len(pieces)))
    assert 5 <= len(kept) <= 60
    prompts = [{pieces[i].ids[:3] for i in side} for side in (learnt, kept)]
    assert not prompts[0] & prompts[1]


def test_more_text_moves_nothing_across() -> None:
    pieces = chats(300)
    _, before = held_out(pieces[:200], 0.05)
    _, after = held_out(pieces, 0.05)
    assert set(before) <= set(after)
    assert all(index in before for index in after if index < 200)


def test_something_is_always_held_out() -> None:
    learnt, kept = held_out(chats(2, answers=1), 0.05)
    assert (len(learnt), len(kept)) == (1, 1)


@pytest.mark.parametrize("pieces", [[], chats(1)])
def test_too_little_text_is_refused(pieces: list[Piece]) -> None:
    with pytest.raises(ModelError, match="too little text"):
        held_out(pieces, 0.05)


def test_the_draft_vocabulary_is_what_answers_use_most() -> None:
    pieces = [Piece((7, 7, 7, 3, 3, 5), start=3), Piece((3, 3, 5, 4))]
    assert frequent_tokens(pieces, 2, vocabulary=10) == [3, 5]
    # Nothing but prompts has a 7, so low ids come first.
    assert frequent_tokens(pieces, 6, vocabulary=10) == [0, 1, 2, 3, 4, 5]
    assert coverage(pieces, [3]) == pytest.approx(4 / 7)
    assert coverage(pieces, None) == 1.0


def test_the_prompts_that_come_along_are_many_and_different() -> None:
    prompts = default_prompts()
    assert len(set(prompts)) == len(prompts) > 300
    assert prompts == default_prompts()


def test_a_prompt_file_has_one_per_line(tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    path.write_text("Hello\n\n  What now? \n")
    assert read_prompts(path) == ["Hello", "What now?"]


@pytest.mark.parametrize("content", [b"", b" \n\n", b"\xff\xfe\x00"])
def test_a_prompt_file_without_prompts_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "prompts.txt"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"prompts\.txt"):
        read_prompts(path)
