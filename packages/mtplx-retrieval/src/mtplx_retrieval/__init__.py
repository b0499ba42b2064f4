"""Embedding and rerank runtime on MLX. Version 0.1 reserves the place; it holds no models yet."""

from mtplx_retrieval._version import __version__

__all__ = ["__version__"]
