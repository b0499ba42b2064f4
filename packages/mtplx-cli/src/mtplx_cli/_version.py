"""The version of this package; `hatch version` edits it."""

__version__ = "0.1.0"
