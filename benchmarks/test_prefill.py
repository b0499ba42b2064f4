"""Reading prompts through recurrent layers: in chunks against mlx-lm's loop over the tokens."""

from collections.abc import Callable

from mtplx_engine.backend import BLAS, mx

import pytest
from measure import Compare, timed
from mlx_lm.models.gated_delta import gated_delta_ops
from mlx_lm.models.qwen3_5 import GatedDeltaNet, TextModelArgs

from mtplx_engine.families.gated_delta import chunked_gated_delta, use_chunked

# Key heads, value heads, their width.
SHAPES = [(16, 32, 128), (16, 16, 128), (2, 4, 64), (2, 4, 16)]


@pytest.mark.parametrize("tokens", [32, 128, 512])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_recurrence_against_the_loop(
    compare: Compare, shape: tuple[int, int, int], tokens: int
) -> None:
    k_heads, v_heads, dim = shape
    keys, values = (1, tokens, k_heads, dim), (1, tokens, v_heads, dim)
    q, k = (x / mx.linalg.norm(x, axis=-1, keepdims=True) for x in mx.random.normal((2, *keys)))
    inputs = [
        dim**-0.5 * q,
        k,
        mx.random.normal(values),
        mx.random.uniform(0.5, 1.0, values[:-1]),
        mx.random.uniform(0.0, 1.0, values[:-1]),
        mx.zeros((1, v_heads, dim, dim)),
    ]
    mx.eval(inputs)

    def speed(update: Callable[..., tuple[mx.array, mx.array]]) -> float:
        def run() -> int:
            mx.eval(update(*inputs))
            return tokens

        return timed(run)

    heads = f"{k_heads}/{v_heads} heads of {dim}"
    name = f"tokens/s of a recurrence over {tokens} tokens, {heads}, {BLAS}"
    compare(name, lambda: speed(chunked_gated_delta), lambda: speed(gated_delta_ops), 5)


def test_whole_layer_against_mlx_lm(compare: Compare) -> None:
    """What remains of it with the projections and the convolution around."""
    args = TextModelArgs(
        hidden_size=1024,
        linear_num_key_heads=16,
        linear_num_value_heads=16,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
    )
    stock = GatedDeltaNet(args)
    ours = GatedDeltaNet(args)
    for layer in (stock, ours):
        layer.eval()
        mx.eval(layer.parameters())
    use_chunked(ours)
    x = mx.random.normal((1, 512, args.hidden_size))

    def speed(layer: GatedDeltaNet) -> float:
        def run() -> int:
            mx.eval(layer(x))
            return x.shape[1]

        return timed(run)

    name = f"tokens/s of a recurrent layer of width 1024 over 512 tokens, {BLAS}"
    compare(name, lambda: speed(ours), lambda: speed(stock), 5)
