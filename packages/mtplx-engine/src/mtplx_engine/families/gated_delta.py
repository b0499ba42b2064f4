"""The gated delta rule a chunk of tokens at a time, for reading prompts on the CPU.

Without Metal, mlx-lm runs a gated delta net's recurrence token by token. Within a chunk, what every
token writes into the state solves a triangular system (the WY representation with the UT transform:
Gated Delta Networks, arXiv 2412.06464, section 3.3; DeltaNet, arXiv 2406.06484, section 3), so that
a chunk is a few matrix products, and only whole chunks follow one another.

mlx-lm's modules and classes stay as they are. But the `__class__` of a layer that is to compute
otherwise is set to a class of its own: a subclass whose `__call__` is mlx-lm's code over a copy of
its globals with another `gated_delta_update`.
"""

import types
from collections.abc import Callable
from typing import Any

from mtplx_engine.backend import BLAS, mx, nn, on_cpu

from mlx_lm.models.gated_delta import compute_g, gated_delta_update

Update = Callable[..., tuple[mx.array, mx.array]]

# Wider chunks mean fewer steps but more arithmetic; 32 is fastest for 16 heads of 128 and more.
CHUNK = 32
# Passes up to this many tokens stay with mlx-lm. No verify pass is wider, it has `MOST_DRAFTS` + 1
# (`decode/planner.py`) at most: its roll-back runs the recurrence again over fewer tokens and must
# arrive at the same bits.
MOST_LOOPED = 24


def current_update(layer: nn.Module) -> Update:
    """The `gated_delta_update` that a recurrent layer calls now."""
    update: Update = type(layer).__call__.__globals__["gated_delta_update"]
    return update


def replace_update(layer: nn.Module, replace: Callable[[Update], Update]) -> None:
    """Give a recurrent layer a class of its own that calls another `gated_delta_update`.

    Args:
        layer: A gated delta net of mlx-lm; it may have had its update replaced before.
        replace: Makes the new function from the one that the layer calls now.
    """
    plain = type(layer)
    code = plain.__call__
    own_globals = {**code.__globals__, "gated_delta_update": replace(current_update(layer))}
    call = types.FunctionType(
        code.__code__, own_globals, code.__name__, code.__defaults__, code.__closure__
    )
    layer.__class__ = type(plain.__name__, (plain,), {"__call__": call})


def chunks_pay() -> bool:
    """Whether chunks beat mlx-lm's own way here.

    Not where Metal has a kernel, nor with MLX's own BLAS: its products are too slow, and it is the
    choice of those who want a prompt read in parts to give the bits of one read at once.
    """
    return on_cpu() and BLAS == "OpenBLAS"


def use_chunked(layer: nn.Module) -> None:
    """Make a recurrent layer read long, unpadded passes in chunks and all others as before.

    Before a `Tape` is attached to the layer, never after: chunks would bypass its recorder.
    """
    assert current_update(layer) is gated_delta_update, "its update was replaced before"
    replace_update(layer, _chunked_if_long)


def _chunked_if_long(update: Update) -> Update:
    def chosen(
        q: mx.array,
        k: mx.array,
        v: mx.array,
        a: mx.array,
        b: mx.array,
        a_log: mx.array,
        dt_bias: mx.array,
        state: mx.array | None = None,
        mask: mx.array | None = None,
        **options: Any,
    ) -> tuple[mx.array, mx.array]:
        # Any other option, `use_kernel=False` of training among them, may change the mathematics.
        known = mask is None and options == {"use_kernel": True}
        if q.shape[1] <= MOST_LOOPED or not known:
            return update(q, k, v, a, b, a_log, dt_bias, state, mask, **options)
        return chunked_gated_delta(q, k, v, compute_g(a_log, a, dt_bias), mx.sigmoid(b), state)

    return chosen


def chunked_gated_delta(
    q: mx.array,
    k: mx.array,
    v: mx.array,
    g: mx.array,
    beta: mx.array,
    state: mx.array | None = None,
    *,
    chunk: int = CHUNK,
) -> tuple[mx.array, mx.array]:
    """The gated delta rule, equal to mlx-lm's `gated_delta_ops` but for rounding.

    For every head, with the state S of shape (Dv, Dk) and column vectors q, k, v at token t:

        d_t = beta_t (v_t - g_t S_{t-1} k_t)
        S_t = g_t S_{t-1} + d_t k_t^T
        y_t = S_t q_t

    All arithmetic is in float32.

    Args:
        q: (B, T, Hk, Dk) queries, normalised and scaled by the caller.
        k: (B, T, Hk, Dk) keys, normalised by the caller.
        v: (B, T, Hv, Dv) values; Hv is a multiple n of Hk, and key head h serves value heads
            n h to n h + n - 1.
        g: (B, T, Hv) decays from 0 to 1, both included.
        beta: (B, T, Hv) writing strengths.
        state: (B, Hv, Dv, Dk) before the first token; None for zeros.
        chunk: Tokens per chunk; the last one may be shorter.

    Returns:
        (B, T, Hv, Dv) outputs in the type of `q`, and the (B, Hv, Dv, Dk) float32 state after the
        last token.
    """
    (batch, length, k_heads, k_dim), (v_heads, v_dim) = k.shape, v.shape[2:]
    grouped = (batch, k_heads, v_heads // k_heads)

    def by_head(x: mx.array, *tail: int) -> mx.array:
        return x.astype(mx.float32).swapaxes(1, 2).reshape(*grouped[:2], -1, length, *tail)

    queries, keys, values = by_head(q, k_dim), by_head(k, k_dim), by_head(v, v_dim)
    decays, betas = by_head(g), by_head(beta)
    if state is None:
        state = mx.zeros((batch, v_heads, v_dim, k_dim))
    running = state.astype(mx.float32).reshape(*grouped, v_dim, k_dim)
    outputs = []
    for start in range(0, length, chunk):
        now = slice(start, start + chunk)
        output, running = _one_chunk(
            queries[..., now, :],
            keys[..., now, :],
            values[..., now, :],
            decays[..., now],
            betas[..., now, None],
            running,
        )
        outputs.append(output)
    y = mx.concatenate(outputs, axis=-2).reshape(batch, v_heads, length, v_dim).swapaxes(1, 2)
    return y.astype(q.dtype), running.reshape(batch, v_heads, v_dim, k_dim)


def _one_chunk(
    q: mx.array, k: mx.array, v: mx.array, g: mx.array, beta: mx.array, state: mx.array
) -> tuple[mx.array, mx.array]:
    """All tokens of one chunk at once.

    With P_ij = g_{j+1} ... g_i for i >= j, else 0, c_i = g_1 ... g_i, rows for tokens, and `*`
    elementwise, unrolling the rule from the state S before the chunk gives:

        D = (I + beta * tril(K K^T * P, -1))^-1 (beta * (V - c * K S^T))
        Y = c * Q S^T + (Q K^T * P) D
        S' = c_C S + (P_C * D)^T K

    Args:
        q: (B, Hk, 1, C, Dk) queries.
        k: (B, Hk, 1, C, Dk) keys.
        v: (B, Hk, n, C, Dv) values.
        g: (B, Hk, n, C) decays.
        beta: (B, Hk, n, C, 1) writing strengths.
        state: (B, Hk, n, Dv, Dk) S.

    Returns:
        (B, Hk, n, C, Dv) Y and (B, Hk, n, Dv, Dk) S'.
    """
    size = k.shape[-2]
    one, below = mx.eye(size), mx.tri(size, k=-1)
    # Running products of numbers up to 1: they neither overflow nor need the logarithm of a zero,
    # and unlike differences of summed logarithms they stay exact behind a token that decays a lot.
    pairs = mx.cumprod(mx.where(below > 0, g[..., None], 1.0), axis=-2) * (below + one)
    since_start = mx.cumprod(g, axis=-1)[..., None]
    both = mx.concatenate([k, q], axis=-2)
    keys_keys, queries_keys = mx.split(both @ k.swapaxes(-1, -2), 2, axis=-2)
    read_keys, read_queries = mx.split(both @ state.swapaxes(-1, -2), 2, axis=-2)
    # Forward substitution. The product (I - L)(I + L^2)(I + L^4)... is no faster and loses every
    # digit when keys resemble each other, since powers of L then grow before they vanish.
    solve = mx.linalg.tri_inv(one + beta * keys_keys * pairs * below, stream=mx.cpu)
    written = solve @ (beta * (v - since_start * read_keys))
    output = since_start * read_queries + (queries_keys * pairs) @ written
    fading = pairs[..., -1, :, None] * written
    return output, since_start[..., -1:, :] * state + fading.swapaxes(-1, -2) @ k
