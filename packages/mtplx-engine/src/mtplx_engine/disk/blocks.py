"""What the tiers of the session cache have in common: how blocks are named, and host bytes."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

PieceKind = Literal["kv", "state", "head"]


@dataclass(frozen=True, slots=True)
class HostArray:
    """An array as bytes that do not belong to MLX.

    Attributes:
        dtype: As safetensors names it: "F32", "BF16", ...
        shape: Of the array.
        data: Row by row.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes | memoryview


Arrays = dict[str, HostArray]


def child_key(parent: bytes, tokens: Sequence[int]) -> bytes:
    """The key of a block: it names these tokens and all that lead to them.

    Args:
        parent: The key of the block before, or of the root.
        tokens: Of the block.
    """
    return sha256(parent + struct.pack(f"<{len(tokens)}I", *tokens)).digest()
