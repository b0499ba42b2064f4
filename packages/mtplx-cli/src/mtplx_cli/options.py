"""Options that several commands share."""

from typing import Annotated, Literal

import typer

Acceptance = Literal["auto", "coupled", "rejection"]
Blas = Literal["auto", "openblas", "mlx"]
KVQuant = Literal["off", "q8", "q4"]

MTPOption = Annotated[
    bool | None,
    typer.Option(
        "--mtp/--no-mtp",
        help="Draft with the MTP head, or never. Without either: draft if there is a head that"
        " works.",
        show_default=False,
    ),
]
DepthOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Tokens to draft per round; 0 decodes plainly.",
        show_default="as many as pays",
    ),
]
CopyOption = Annotated[
    bool,
    typer.Option(
        "--copy/--no-copy",
        help="Also draft by copying from earlier text that recurs, where that pays.",
    ),
]
AcceptanceOption = Annotated[
    Acceptance,
    typer.Option(
        help="How drafts are judged. coupled: a seeded answer is the same at every depth;"
        " rejection: accepts a little more; auto: coupled with a seed, rejection without."
    ),
]
KVQuantOption = Annotated[
    KVQuant,
    typer.Option(
        "--kv-quant",
        help="Keep keys and values in 8 or 4 bits, for long contexts in little memory. Requests may"
        " ask for another format.",
    ),
]
BlasOption = Annotated[
    Blas,
    typer.Option(
        help="Linear algebra on the CPU under Linux. openblas is many times faster; mlx is equal"
        " bit for bit at every depth; auto takes openblas where it is installed."
    ),
]
