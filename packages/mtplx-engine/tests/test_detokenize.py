"""Pieces joined equal the whole decoding, for every kind of decoder and any ids."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE

from mtplx_engine.decode.detokenize import Decode, Detokenizer
from mtplx_engine.tiny import write_byte_tokenizer


def byte_level(folder: Path) -> Decode:
    write_byte_tokenizer(folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=True))


def sentencepiece_like() -> Decode:
    """Words with a leading-space mark, and single bytes for what has no token."""
    words = ["\u2581", "\u2581the", "\u2581\u00e9t\u00e9", "ing", "s", "\u2581\u2581", "\u4e16"]
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(256)}
    vocabulary |= {word: 256 + index for index, word in enumerate(words)}
    tokenizer = Tokenizer(BPE(vocabulary, [], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return lambda ids: str(tokenizer.decode(list(ids)))


@pytest.fixture(scope="module")
def byte_decode(tmp_path_factory: pytest.TempPathFactory) -> Decode:
    return byte_level(tmp_path_factory.mktemp("tokenizer"))


def pieces(decode: Decode, ids: list[int]) -> list[str]:
    detokenizer = Detokenizer(decode)
    return [*(detokenizer.add(token) for token in ids), detokenizer.close()]


any_bytes = st.lists(st.integers(0, 259), max_size=40)
real_text = st.text(max_size=15).map(lambda text: list(text.encode()))


@given(st.one_of(any_bytes, real_text))
def test_byte_level(byte_decode: Decode, ids: list[int]) -> None:
    assert "".join(pieces(byte_decode, ids)) == byte_decode(ids)


SPM = sentencepiece_like()
# Such tokenizers write a space as a mark, never as a byte.
spm_characters = st.characters(exclude_characters=" ", codec="utf-8")
spm_groups = st.one_of(
    st.integers(256, 262).map(lambda token: [token]),
    st.text(spm_characters, max_size=2).map(lambda text: list(text.encode())),
)
spm_ids = st.lists(spm_groups, max_size=12).map(
    lambda groups: [token for group in groups for token in group]
)


@given(spm_ids)
def test_byte_fallback_and_word_marks(ids: list[int]) -> None:
    assert "".join(pieces(SPM, ids)) == SPM(ids)


@given(st.text(min_size=1, max_size=10))
def test_no_piece_ends_inside_a_character(byte_decode: Decode, text: str) -> None:
    for piece in pieces(byte_decode, list(text.encode())):
        assert "\ufffd" not in piece or "\ufffd" in text


@given(st.text(min_size=1, max_size=10))
def test_text_comes_as_soon_as_its_character_is_complete(byte_decode: Decode, text: str) -> None:
    out = pieces(byte_decode, [*text.encode(), ord("!")])
    assert out[-1] == ""


@given(st.integers(0, 200), st.text(max_size=6))
def test_a_long_invalid_run_is_followed_by_the_right_text(
    byte_decode: Decode, count: int, text: str
) -> None:
    ids = [0xFF] * count + list(text.encode())
    assert "".join(pieces(byte_decode, ids)) == byte_decode(ids)


def test_the_window_stays_short(byte_decode: Decode) -> None:
    longest = 0

    def watched(ids: Sequence[int]) -> str:
        nonlocal longest
        longest = max(longest, len(ids))
        return byte_decode(ids)

    for token in (0xFF, 257):  # never valid, and a special token that is skipped
        pieces(watched, [token] * 2000)
    assert longest < 100


def test_invalid_bytes_do_not_stall(byte_decode: Decode) -> None:
    out = pieces(byte_decode, [0xFF] * 50 + list(b"ok"))
    assert sum(len(piece) for piece in out[:50]) >= 47
