"""The bytes of a text's tokens joined are the text, whatever kind of tokenizer made them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.utils import load_tokenizer
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE, Unigram, WordPiece
from tokenizers.trainers import BpeTrainer, UnigramTrainer
from transformers import PreTrainedTokenizerFast

from mtplx_engine.decode.token_bytes import TokenBytes
from mtplx_engine.tiny import write_byte_tokenizer

TEXTS = [
    "The quick brown fox jumps over the lazy dog, doesn't it?  Twice.",
    "def f(x):\n\treturn x ** 2  # тест\r\n",
    "Größe, naïve, Ελληνικά, עברית, العربية, हिन्दी, 日本語のテキスト, 한국어",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u00a0 \ufeff \ufffd",
    "a" * 20 + " " * 20 + "\n\n\n",
]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
MARK = "\u2581"


def byte_level(*, prefix: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    tokenizer.add_tokens([AddedToken("<\uff5cpad\u2581pad\uff5c>"), AddedToken("caf\u00e9s")])
    return tokenizer


def byte_level_in_a_sequence() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel()])
    return tokenizer


def llama() -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]
    )
    trainer = BpeTrainer(vocab_size=150, show_progress=False)
    tokenizer.train_from_iterator([TEXTS[0]], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    entries = ["<unk>", *BYTES, *model["vocab"]]
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer.model = BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>")
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(MARK, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.add_special_tokens([AddedToken("<s>", special=True)])
    return tokenizer


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "always")
    trainer = UnigramTrainer(
        vocab_size=120, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator([TEXTS[0]], trainer)
    entries = [(entry, score) for entry, score in json.loads(tokenizer.to_str())["model"]["vocab"]]
    entries += [(byte, -20.0) for byte in BYTES]
    tokenizer.model = Unigram(entries, 0, byte_fallback=True)
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(MARK, "always")]
    )
    return tokenizer


def wrap(tokenizer: Tokenizer) -> Any:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False)


KINDS = {
    "byte level": wrap(byte_level()),
    "byte level with a space before": wrap(byte_level(prefix=True)),
    "byte level in a sequence": wrap(byte_level_in_a_sequence()),
    "llama": wrap(llama()),
    "unigram": wrap(unigram()),
}
MARKED = ("llama", "unigram")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "config.json").write_text('{"model_type": "llama"}')
    write_byte_tokenizer(folder)
    return load_tokenizer(folder)


def joined(tokenizer: Any, text: str) -> str:
    ids = tokenizer.encode(text, add_special_tokens=False)
    return b"".join(map(TokenBytes(tokenizer).of, ids)).decode()


def check_text(kind: str, text: str) -> None:
    got = joined(KINDS[kind], text)
    if "level" in kind and "before" not in kind:
        assert got == text
    else:
        assert got in (text, " " + text)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_text(kind: str, text: str) -> None:
    check_text(kind, text)


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters=MARK), max_size=30))
def test_any_text(kind: str, text: str) -> None:
    check_text(kind, text)


@given(text=st.text(max_size=30))
def test_the_tiny_models_tokenizer(tiny: Any, text: str) -> None:
    assert joined(tiny, text) == text


@pytest.mark.parametrize("kind", KINDS)
def test_each_token_is_what_the_tokenizer_decodes_it_to(kind: str) -> None:
    tokenizer = KINDS[kind]
    of = TokenBytes(tokenizer).of
    special = set(tokenizer.backend_tokenizer.get_added_tokens_decoder())
    for token in set(range(len(tokenizer))) - special:
        alone = of(token).decode(errors="replace")
        decoded = tokenizer.decode([token])
        assert decoded in ((alone, alone.removeprefix(" ")) if kind in MARKED else (alone,))


def test_pieces_of_a_character() -> None:
    for kind in KINDS:
        tokenizer = KINDS[kind]
        ids = tokenizer.encode("\U0001f9ff", add_special_tokens=False)
        pieces = [TokenBytes(tokenizer).of(token) for token in ids]
        assert sum(piece.decode(errors="replace").count("\ufffd") for piece in pieces) > 1
        assert b"".join(pieces).decode().strip() == "\U0001f9ff"


def test_added_tokens_stand_for_their_own_text() -> None:
    tokenizer = KINDS["byte level"]
    for text in ("<|end|>", "<\uff5cpad\u2581pad\uff5c>", "caf\u00e9s"):
        (token,) = tokenizer.encode(text, add_special_tokens=False)
        assert TokenBytes(tokenizer).of(token).decode() == text
    tokenizer = KINDS["llama"]
    assert TokenBytes(tokenizer).of(tokenizer.convert_tokens_to_ids("<s>")) == b"<s>"


def test_added_runs_of_marks_are_spaces() -> None:
    raw = llama()
    raw.add_tokens([AddedToken(MARK * 7, normalized=False)])
    tokenizer = wrap(raw)
    assert TokenBytes(tokenizer).of(tokenizer.convert_tokens_to_ids(MARK * 7)) == b" " * 7


def test_an_id_that_only_pads_the_vocabulary() -> None:
    for tokenizer in KINDS.values():
        assert TokenBytes(tokenizer).of(100_000) == b""


def word_piece() -> Tokenizer:
    tokenizer = Tokenizer(WordPiece({"[UNK]": 0, "play": 1, "##ing": 2}, unk_token="[UNK]"))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def without_decoder() -> Tokenizer:
    return Tokenizer(BPE({"play": 0, "\u00e9": 1}, []))


class Slow:
    def decode(self, ids: list[int]) -> str:
        return "\u00e9" * ids[0]


@pytest.mark.parametrize("make", [word_piece, without_decoder])
def test_other_decoders_give_the_text_of_the_token_alone(make: Callable[[], Tokenizer]) -> None:
    tokenizer = wrap(make())
    of = TokenBytes(tokenizer).of
    assert of(1) == tokenizer.decode([1]).encode() != b""


def test_a_tokenizer_of_pure_python() -> None:
    assert TokenBytes(Slow()).of(2) == "\u00e9\u00e9".encode()


def test_a_token_is_looked_up_once(tiny: Any) -> None:
    table = TokenBytes(tiny)
    assert table.of(65) is table.of(65)
