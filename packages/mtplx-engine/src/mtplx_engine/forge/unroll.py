"""The head's passes over whole sequences, each depth as decoding would make it.

A draft at depth d has behind it the pairs that were read with the trunk's own hidden states, and
d - 1 pairs that the head made up since. Training that lets every pair of depth 2 attend to made-up
pairs only would fit a situation that never occurs.
"""

from mtplx_engine.backend import mx

from mtplx_engine.families.head import Head


class ChainCache:
    """A stand-in for a layer's cache that keeps the keys and values of every depth.

    Pairs of depth d start at position d - 1. The one that grew from root r stands at r + d - 1 and
    sees the pairs of depth 1 up to r and its own ancestors, one of each depth between.
    """

    def __init__(self) -> None:
        self.offset = 0
        self._keys: list[mx.array] = []
        self._values: list[mx.array] = []

    def make_mask(
        self,
        count: int,
        return_array: bool = False,
        window_size: int | None = None,
    ) -> mx.array | str:
        """Who sees whom: (count, keys of all depths), or mlx-lm's word for a plain causal mask."""
        if not self._keys:
            return "causal"
        roots = mx.arange(count)[:, None]
        first = mx.arange(self._keys[0].shape[2])[None] <= roots
        made_up = [mx.arange(keys.shape[2])[None] == roots for keys in self._keys[1:]]
        itself = mx.arange(count)[None] == roots
        return mx.concatenate([first, *made_up, itself], axis=1)

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Add one depth's (B, heads, S, D) keys and values and return those of all depths."""
        self._keys.append(keys)
        self._values.append(values)
        self.offset += 1
        return mx.concatenate(self._keys, axis=2), mx.concatenate(self._values, axis=2)


def unroll(head: Head, hidden: mx.array, tokens: mx.array, depths: int) -> list[mx.array]:
    """Run the head over sequences at every depth.

    Args:
        head: Any head; its own parameters may be traced for gradients.
        hidden: (B, S, H) hidden states of the trunk.
        tokens: (B, S) token ids at the same positions.
        depths: How many; S must be larger.

    Returns:
        For d = 1 .. depths the (B, S - d, H) outputs. Entry r has seen the trunk up to position r
        and tokens up to r + d, and guesses token r + d + 1.
    """
    caches = [ChainCache() for _ in head.module.layers]
    outputs: list[mx.array] = []
    for depth in range(1, depths + 1):
        below = outputs[-1] if outputs else hidden
        embedding = head.trunk.embed(tokens[:, depth:]).astype(below.dtype)
        outputs.append(head.module(below[:, :-1], embedding, caches))
    return outputs
