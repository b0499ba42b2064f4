"""`mtplx connect`."""

from typing import Annotated

import typer


def connect(
    agent: Annotated[
        str | None,
        typer.Argument(
            help="The program to connect. Without it: a list of those that are known.",
            show_default=False,
        ),
    ] = None,
    url: Annotated[str, typer.Option(help="Where the server listens.")] = "http://127.0.0.1:8000",
    model: Annotated[
        str | None,
        typer.Option(
            help="The model's name. Without it the running server is asked, also for the length of"
            " its context.",
            show_default=False,
        ),
    ] = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Put the settings into the program's file, beside what it holds; a copy of the"
            " former file is kept.",
        ),
    ] = False,
) -> None:
    """Show, or write, the settings with which a program uses this machine's server.

    Example: mtplx connect codex --write
    """
    from mtplx_cli.connecting.command import connect_agent, list_agents  # noqa: PLC0415

    if agent is None:
        list_agents()
    else:
        connect_agent(agent, url, model, write=write)
