"""Grammars over a vocabulary of single bytes, to ask whether a text follows a JSON schema."""

from functools import cache
from types import SimpleNamespace
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from mtplx_engine.chat.grammar import Grammars
from mtplx_engine.constraint import JsonSchema


@cache
def byte_grammars() -> tuple[Grammars, dict[int, int], int]:
    """Grammars, the token of each byte, and the end token."""
    # ByteLevel writes bytes that print as themselves, and the others from U+0100 upwards.
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    names = {byte: chr(byte) for byte in plain}
    names |= {byte: chr(256 + i) for i, byte in enumerate(others)}
    words = {name: i for i, name in enumerate(names.values())} | {"<end>": 256}
    backend = Tokenizer(BPE(words, []))
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False)
    backend.decoder = ByteLevelDecoder()
    backend.add_special_tokens(["<end>"])
    tokenizer = SimpleNamespace(backend_tokenizer=backend)
    tokens = {byte: words[name] for byte, name in names.items()}
    return Grammars(tokenizer, vocabulary=257, end_tokens=[256]), tokens, 256


class Texts:
    """Which texts a schema's grammar lets through."""

    def __init__(self, schema: Any) -> None:
        grammars, self._tokens, self._end = byte_grammars()
        self._constraint = grammars.make(JsonSchema(schema))

    def accept(self, text: str) -> bool:
        """Whether this one is let through as a whole."""
        count = 0
        try:
            for byte in text.encode("utf-8", "surrogatepass"):
                self._constraint.advance(self._tokens[byte])
                count += 1
            return bool(self._constraint.allowed()[self._end])
        except ValueError:
            return False
        finally:
            self._constraint.roll_back(count)
