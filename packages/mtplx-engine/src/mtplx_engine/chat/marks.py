"""The texts of a model's added tokens, such as `<think>`, and how they are told from plain text."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any


class Marks:
    """What a tokenizer writes as one token of its own.

    Attributes:
        ids: Of each such text.
        special: Those that are not part of an answer's text unless a reader asks for them.
    """

    def __init__(self, ids: Mapping[str, int], special: frozenset[str]) -> None:
        self.ids = ids
        self.special = special
        longest_first = sorted(ids, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    @classmethod
    def of(cls, tokenizer: Any) -> "Marks":
        """Those of mlx-lm's tokenizer wrapper, or of what it wraps."""
        added = tokenizer.added_tokens_decoder
        ids = {token.content: index for index, token in added.items()}
        return cls(ids, frozenset(token.content for token in added.values() if token.special))

    def hidden(self, shown: Iterable[str]) -> frozenset[int]:
        """Ids of special tokens that none of the texts to be shown has in it."""
        shown = tuple(shown)
        return frozenset(
            self.ids[mark] for mark in self.special if not any(mark in text for text in shown)
        )

    def spell(self, text: str) -> str:
        """A text in Lark: its marks as tokens, the rest quoted."""
        parts: list[str] = []
        at = 0
        for found in self._pattern.finditer(text):
            parts += _literal(text[at : found.start()])
            parts.append(f"<[{self.ids[found[0]]}]>")
            at = found.end()
        return " ".join([*parts, *_literal(text[at:])])

    def is_token(self, text: str) -> bool:
        """Whether a text is written as one token."""
        return text in self.ids


def _literal(text: str) -> list[str]:
    return [quoted(text)] if text else []


def quoted(text: str) -> str:
    """A text as a literal in Lark."""
    return json.dumps(text, ensure_ascii=False)
