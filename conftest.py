"""Settings that every test of the workspace shares."""

import os

# With MLX's own BLAS, a forward pass over k tokens equals k passes over one, bit for bit, so tests
# of identity can demand identity. Tests of the embedded default run it in a process of its own.
os.environ.setdefault("MTPLX_BLAS", "mlx")
