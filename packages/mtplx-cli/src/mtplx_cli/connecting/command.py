"""The work of `mtplx connect`: ask the server, make the configuration, show or write it."""

import os
from collections.abc import Iterator
from typing import NoReturn
from urllib.parse import urlsplit

import typer

import mtplx_client
from mtplx_cli.connecting.agent import Agent, CannotMerge, Configuration, File, Served
from mtplx_cli.connecting.agents import AGENTS
from mtplx_cli.connecting.showing import show, show_file
from mtplx_cli.connecting.writing import write_settings
from mtplx_cli.exit_codes import ExitCode
from mtplx_client.errors import ClientError

_ASKING_S = 10.0


def list_agents() -> None:
    """Write the known programs to stdout."""
    width = max(map(len, AGENTS))
    for agent in AGENTS.values():
        typer.echo(f"{agent.name:{width}}  {agent.title}")
    typer.echo("\nNext: mtplx connect NAME", err=True)


def connect_agent(name: str, url: str, model: str | None, *, write: bool) -> None:
    """Show or write the configuration of one program.

    Raises:
        typer.BadParameter: There is no such program, or the URL is none.
    """
    if name not in AGENTS:
        known = ", ".join(AGENTS)
        raise typer.BadParameter(f"{name!r} is not known. Known are: {known}.", param_hint="AGENT")
    agent = AGENTS[name]
    url = _checked_url(url)
    served = Served(url, model) if model else _ask(url)
    configuration = agent.configure(served)
    if served.context_length is None:
        unknown = "the length of the context is not known, so the settings do not name it"
        typer.echo(f"mtplx: {unknown}; without --model the running server is asked", err=True)
    if not write:
        _print(show(agent, configuration, os.environ))
    elif configuration.file is None:
        _print(show(agent, configuration, os.environ))
        _fail(f"{agent.title} has no file to write; do what is said above")
    else:
        _write(agent, configuration, configuration.file)


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise typer.BadParameter(
            f"{url!r} is not a URL such as http://127.0.0.1:8000.", param_hint="--url"
        )
    return url.rstrip("/").removesuffix("/v1")


def _ask(url: str) -> Served:
    try:
        with mtplx_client.Client(url, timeout=_ASKING_S) as client:
            cards = client.models().data
    except ClientError as error:
        why = str(error).partition("\n")[0]
        _fail(
            f"no mtplx server answers at {url} ({why}); start `mtplx serve`, say where it is with"
            " --url, or name the model with --model"
        )
    chatting = [card for card in cards if "chat" in card.capabilities]
    if not chatting:
        _fail(f"the server at {url} serves no model to chat with; name one with --model")
    return Served(url, chatting[0].id, chatting[0].context_length)


def _write(agent: Agent, configuration: Configuration, file: File) -> None:
    path = file.place.path(os.environ)
    try:
        written = write_settings(path, file.format, file.settings)
    except CannotMerge as error:
        _print(show_file(path, file))
        _fail(f"{path} is left as it is: {error}; put the settings above into it yourself")
    except OSError as error:
        _fail(f"{path} cannot be changed: {error.strerror}; all is as it was")
    if written.backup:
        typer.echo(f"Backup   {written.backup}", err=True)
    typer.echo(f"{'Wrote    ' if written.changed else 'Is right '}{path}", err=True)
    for note in configuration.notes:
        typer.echo(f"Note     {note}", err=True)
    typer.echo(f"Run      {configuration.command}", err=True)


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        typer.echo(line)


def _fail(message: str) -> NoReturn:
    typer.echo(f"mtplx: {message}", err=True)
    raise typer.Exit(ExitCode.ERROR)
