"""Which tokens a head may draft. Fewer make a draft cheaper and rarely cost acceptance."""

from collections import Counter
from collections.abc import Sequence

from mtplx_engine.forge.text import Piece


def frequent_tokens(pieces: Sequence[Piece], size: int, *, vocabulary: int) -> list[int]:
    """The most frequent tokens of what is learnt from, ascending.

    Args:
        pieces: The text; prompts do not count.
        size: How many.
        vocabulary: Tokens that there are. Where the text has fewer than `size`, the lowest ids
            fill up: tokenizers number their merges from frequent to rare.
    """
    counts = Counter(token for piece in pieces for token in piece.ids[piece.start :])
    chosen = [token for token, _ in counts.most_common(size) if token < vocabulary]
    rest = (token for token in range(vocabulary) if token not in counts)
    chosen += [token for token, _ in zip(rest, range(size - len(chosen)), strict=False)]
    return sorted(chosen)


def coverage(pieces: Sequence[Piece], chosen: Sequence[int] | None) -> float:
    """The share of learnt tokens that could be drafted."""
    if chosen is None:
        return 1.0
    among = set(chosen)
    tokens = [token for piece in pieces for token in piece.ids[piece.start :]]
    return sum(token in among for token in tokens) / max(len(tokens), 1)
