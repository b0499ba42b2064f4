"""Checks JSON schemas before grammars are made of them: what is accepted is enforced."""

from mtplx_engine.chat.json_schema.check import checked

__all__ = ["checked"]
