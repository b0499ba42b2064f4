"""What training and measuring compute is what decoding computes."""

from mtplx_engine.backend import mx

import numpy as np

from mtplx_engine.forge.start import Start
from mtplx_engine.forge.unroll import unroll


def test_every_depth_equals_the_passes_of_a_round(start: Start) -> None:
    """Read the true pairs up to a root, then feed the head its own output, as `draft` does."""
    head, depths = start.head, 4
    tokens = mx.array([list(b"It was the last evening of the summer")])
    hidden = head.trunk.body(tokens, None).astype(mx.float32)
    outputs = unroll(head, hidden, tokens, depths)
    for root in (0, 7, tokens.shape[1] - depths - 2):
        cache = head.make_cache()
        last = head.read(hidden[:, : root + 1], tokens[:, 1 : root + 2], cache)[:, -1:]
        for depth in range(1, depths + 1):
            got = outputs[depth - 1][:, root : root + 1]
            np.testing.assert_allclose(np.array(got), np.array(last), rtol=1e-3, atol=1e-4)
            following = tokens[:, root + depth + 1 : root + depth + 2]
            last = head.read(last, following, cache)


def test_the_shapes_shrink_with_the_depth(start: Start) -> None:
    tokens = mx.zeros((2, 9), dtype=mx.int32)
    hidden = mx.zeros((2, 9, start.head.trunk.args.hidden_size))
    assert [output.shape[1] for output in unroll(start.head, hidden, tokens, 3)] == [8, 7, 6]
