"""Filling the text file: answers that the model writes itself, and given texts."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mtplx_engine.backend import mx

from mlx_lm.generate import batch_generate
from mlx_lm.sample_utils import make_sampler

from mtplx_engine.errors import ModelError
from mtplx_engine.forge.prompts import read_text
from mtplx_engine.forge.text import Piece, append_pieces, read_pieces
from mtplx_engine.models.trunk import Trunk

OnTokens = Callable[[int, int], None]

# A head is used at all temperatures, and a low one alone makes a small model repeat itself.
_TEMPERATURES = (0.0, 0.2, 0.6, 1.0)
_BATCH = 16
_LEAST_ANSWER = 16
_LEAST_PIECE = 16


def write_answers(
    trunk: Trunk,
    prompts: Sequence[str],
    path: Path,
    *,
    tokens: int,
    longest: int,
    seed: int,
    on_tokens: OnTokens,
) -> None:
    """Let the model answer prompts until the file holds enough of its own tokens.

    Going on with a file continues the list of prompts where it stopped; at its end the list
    begins again, with the temperatures moved by one.

    Args:
        trunk: The model.
        prompts: What it is asked.
        path: The text file.
        tokens: Answer tokens that the file shall hold.
        longest: Tokens of prompt and answer together.
        seed: Of the sampling.
        on_tokens: Called with tokens there and tokens wanted.

    Raises:
        ModelError: No prompt leaves room for an answer.
    """
    answers = [piece for piece in read_pieces(path) if piece.start]
    there = sum(len(piece.ids) - piece.start for piece in answers)
    count = len(answers)
    if there >= tokens:
        return
    rendered = [
        ids for ids in _render(trunk.tokenizer, prompts) if len(ids) + _LEAST_ANSWER < longest
    ]
    if not rendered:
        raise ModelError(f"No prompt leaves room for an answer in {longest} tokens.")
    while there < tokens:
        batch = [rendered[index % len(rendered)] for index in range(count, count + _BATCH)]
        turn = count // _BATCH + count // len(rendered)
        mx.random.seed(seed + turn)
        temperature = _TEMPERATURES[turn % len(_TEMPERATURES)]
        pieces = _answer(trunk, batch, temperature, longest)
        append_pieces(path, pieces)
        count += len(pieces)
        there += sum(len(piece.ids) - piece.start for piece in pieces)
        on_tokens(there, tokens)


def _render(tokenizer: Any, prompts: Sequence[str]) -> Iterator[list[int]]:
    """Token ids of each prompt, as a chat where the model knows chats."""
    for prompt in prompts:
        if tokenizer.chat_template is None:
            yield tokenizer.encode(prompt)
        else:
            yield tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], add_generation_prompt=True
            )


def _answer(
    trunk: Trunk, prompts: list[list[int]], temperature: float, longest: int
) -> list[Piece]:
    room = [longest - len(prompt) for prompt in prompts]
    answers = batch_generate(
        trunk.model,
        trunk.tokenizer,
        prompts,
        max_tokens=room,
        return_token_ids=True,
        sampler=make_sampler(temp=temperature),
    ).token_ids
    end = min(trunk.tokenizer.eos_token_ids)
    pieces = []
    for prompt, answer, most in zip(prompts, answers, room, strict=True):
        # An answer that is not cut short ended by itself; the end itself is not handed out.
        ended = [end] if len(answer) < most else []
        pieces.append(Piece((*prompt, *answer, *ended), len(prompt)))
    return pieces


def add_texts(tokenizer: Any, texts: Sequence[Path], path: Path, *, longest: int) -> None:
    """Cut text files into sequences and add those that the text file does not hold yet.

    Raises:
        ModelError: A file cannot be read, or is too short to learn from.
    """
    there = {piece.ids for piece in read_pieces(path)}
    for text in texts:
        ids = tokenizer.encode(read_text(text), add_special_tokens=False)
        cut = [tuple(ids[at : at + longest]) for at in range(0, len(ids), longest)]
        pieces = [Piece(part) for part in cut if len(part) >= _LEAST_PIECE]
        if not pieces:
            raise ModelError(f"{text} is too short: {len(ids)} tokens of at least {_LEAST_PIECE}.")
        append_pieces(path, [piece for piece in pieces if piece.ids not in there])
