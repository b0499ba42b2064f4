"""The `mtplx` command: serve a model, run a prompt, inspect a folder."""

from mtplx_cli._version import __version__

__all__ = ["__version__"]
