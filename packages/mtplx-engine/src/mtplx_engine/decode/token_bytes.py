"""The bytes that each token stands for.

A token need not be text by itself: a character may span several. Clients that take tokens one by
one, as with log-probabilities, get the bytes and can join them.

Tokenizers write bytes into their vocabularies in different ways, and their decoder, a list of
steps, says in which:

- byte level (GPT-2, Llama 3, Qwen): each character of the entry stands for one byte;
- SentencePiece-like (Llama 2, Mistral, Gemma): a mark stands for a space, and entries such as
  `<0xE2>` for a byte.

The tokens of a text joined are that text in UTF-8. The one exception is the space that
SentencePiece-like tokenizers, and byte-level ones that say so, put before a text: decoding a whole
text drops it, but a token does not know whether it is the first.
"""

import json
import re
from functools import cached_property
from typing import Any

_BYTE_ENTRY = re.compile("<0x([0-9A-Fa-f]{2})>")

Step = dict[str, Any]


class TokenBytes:
    """The bytes of the tokens of one tokenizer; looked up once each.

    Args:
        tokenizer: Of transformers or mlx-lm. Where the steps of its decoder are not known here,
            or there are none, a token stands for the text that decoding it by itself gives.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._known: dict[int, bytes] = {}

    def of(self, token: int) -> bytes:
        """The bytes of a token; none for an id that only pads the vocabulary."""
        known = self._known.get(token)
        if known is None:
            known = self._known[token] = self._look_up(token)
        return known

    def _look_up(self, token: int) -> bytes:
        if self._steps is None:
            return str(self._tokenizer.decode([token])).encode()
        if token in self._literal:
            return self._literal[token].encode()
        entry = self._tokenizer.backend_tokenizer.id_to_token(token)
        return b"" if entry is None else _apply(self._steps, entry)

    @cached_property
    def _steps(self) -> list[Step] | None:
        """What the decoder does to a token; None where this is not known here."""
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None or backend.decoder is None:
            return None
        steps = _of_one_token(json.loads(backend.decoder.__getstate__()))
        return steps if all(_is_known(step) for step in steps) else None

    @cached_property
    def _literal(self) -> dict[int, str]:
        """Tokens that stand for their entry as it is written.

        Added tokens are found in a text before it is brought into the vocabulary's form. Where
        that form has marks for spaces, some that are not special are written with them all the
        same (Gemma's runs of spaces).
        """
        added = self._tokenizer.backend_tokenizer.get_added_tokens_decoder()
        marked = not any(step["type"] == "ByteLevel" for step in self._steps or ())
        return {i: token.content for i, token in added.items() if token.special or not marked}


def _of_one_token(decoder: Step) -> list[Step]:
    """The steps of a decoder, up to where it joins the tokens: what follows sees the whole text."""
    steps: list[Step] = []
    for step in decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]:
        if step["type"] == "Fuse":
            break
        steps.append(step)
    return steps


def _is_known(step: Step) -> bool:
    if step["type"] == "Replace":
        return "String" in step["pattern"]
    return step["type"] in ("ByteLevel", "ByteFallback", "Metaspace")


def _apply(steps: list[Step], entry: str) -> bytes:
    for step in steps:
        match step["type"]:
            case "ByteLevel":
                return _from_alphabet(entry)
            case "ByteFallback" if byte := _BYTE_ENTRY.fullmatch(entry):
                return bytes.fromhex(byte[1])
            case "Replace":
                entry = entry.replace(step["pattern"]["String"], step["content"])
            case "Metaspace":
                entry = entry.replace(step["replacement"], " ")
    return entry.encode()


def _from_alphabet(entry: str) -> bytes:
    """An entry of a byte-level vocabulary; as the decoder does it, plain text where it is none."""
    if not _ALPHABET.keys() >= set(entry):
        return entry.encode()
    return bytes(_ALPHABET[character] for character in entry)


def _alphabet() -> dict[str, int]:
    """GPT-2's stand-ins for bytes: printable ones for themselves, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    stand_ins = {chr(byte): byte for byte in printable}
    return stand_ins | {chr(0x100 + index): byte for index, byte in enumerate(others)}


_ALPHABET = _alphabet()
