"""`mtplx inspect`."""

from typing import Annotated

import typer


def inspect(
    model: Annotated[
        str,
        typer.Argument(
            help="A model folder, a Hugging Face id in the cache, or smollm2-135m-instruct."
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object instead of a table.")
    ] = False,
) -> None:
    """Say what a model is and whether it can draft, without loading or downloading it.

    Example: mtplx inspect ./Qwen3.5-4B-4bit
    """
    from mtplx_cli.describing import describe  # noqa: PLC0415

    describe(model, as_json=as_json)
