"""Describing a model that is on this machine, without loading it."""

import json
from collections.abc import Iterator
from dataclasses import asdict

import typer

from mtplx_engine.models.card import ModelCard, read_card
from mtplx_engine.models.locate import Located, locate_cached

_MEGA = 1_000_000


def describe(model: str, *, as_json: bool) -> None:
    """Write what is known of a model to stdout.

    Raises:
        ModelError: It is not here, or its files are not a model.
    """
    located = locate_cached(model)
    card = read_card(located.folder, located.head)
    if as_json:
        content = {"id": located.id} | asdict(card) | {"folder": str(card.folder)}
        typer.echo(json.dumps(content))
        return
    for label, value in _rows(located, card):
        typer.echo(f"{label:<14} {value}")


def _rows(located: Located, card: ModelCard) -> Iterator[tuple[str, str]]:
    per_1k = card.footprint.per_token_bytes * 1000
    yield "Model", located.id
    yield "Folder", str(card.folder)
    yield "Architecture", card.model_type
    yield "Parameters", f"{_millions(card.parameters)} M"
    yield "Layers", f"{card.layers} of width {card.hidden_size}"
    yield "Context", f"{card.context_length:,} tokens"
    yield "Vocabulary", f"{card.vocabulary:,} tokens"
    yield "Quantization", card.quantization
    yield "Memory", f"{_millions(card.weight_bytes)} MB weights"
    yield "", f"{_millions(per_1k)} MB per 1,000 tokens of a conversation"
    if card.footprint.state_bytes:
        yield "", f"{_millions(card.footprint.state_bytes)} MB recurrent state per conversation"
    yield "MTP head", card.head or "none"
    yield "Verdict", card.verdict


def _millions(number: float) -> str:
    return f"{number / _MEGA:,.1f}"
