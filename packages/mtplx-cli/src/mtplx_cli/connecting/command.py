"""The work of `mtplx connect`: ask the server, make the configuration, show or write it."""

import os
from collections.abc import Iterator
from typing import NoReturn

import typer

import mtplx_client
from mtplx_cli.connecting.agent import CannotMerge, Configuration, File, Served
from mtplx_cli.connecting.agents import AGENTS
from mtplx_cli.connecting.checking import Unusable, checked_text, checked_url
from mtplx_cli.connecting.showing import show, show_file
from mtplx_cli.connecting.writing import write_settings
from mtplx_cli.exit_codes import ExitCode
from mtplx_client.errors import ApiError, ClientError, InvalidReply

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
        typer.BadParameter: There is no such program, or the URL or the model's name is none.
    """
    if name not in AGENTS:
        known = ", ".join(AGENTS)
        raise typer.BadParameter(f"{name!r} is not known. Known are: {known}.", param_hint="AGENT")
    agent = AGENTS[name]
    served = _served(url, model)
    configuration = agent.configure(served)
    if served.context_length is None:
        unknown = "the length of the context is not known, so the settings do not name it"
        typer.echo(f"mtplx: {unknown}; without --model the running server is asked", err=True)
    try:
        if write and configuration.file:
            _write(configuration, configuration.file)
            return
        _print(show(agent, configuration, os.environ))
    except Unusable as error:
        _fail(str(error))
    if write:
        _fail(f"{agent.title} has no file to write; do what is said above")


def _served(url: str, model: str | None) -> Served:
    try:
        base = checked_url(url)
    except Unusable as error:
        raise typer.BadParameter(f"{url!a}: {error}.", param_hint="--url") from None
    if model is None:
        return _ask(base)
    try:
        return Served(base, checked_text(model, "it"))
    except Unusable as error:
        raise typer.BadParameter(f"{model!a}: {error}.", param_hint="--model") from None


def _ask(url: str) -> Served:
    advice = "say where it is with --url, or name the model with --model"
    try:
        with mtplx_client.Client(url, timeout=_ASKING_S) as client:
            cards = client.models().data
    except (ApiError, InvalidReply) as error:
        why = _first_line(error)
        _fail(f"{url} answers, but not as an mtplx server ({why}); {advice}")
    except ClientError as error:
        why = _first_line(error)
        _fail(f"no mtplx server answers at {url} ({why}); start `mtplx serve`, {advice}")
    chatting = [card for card in cards if "chat" in card.capabilities]
    if not chatting:
        _fail(f"the server at {url} serves no model to chat with; name one with --model")
    model, length = chatting[0].id, chatting[0].context_length
    try:
        checked_text(model, "the name of its model")
    except Unusable as error:
        _fail(f"{url} answers, but not as an mtplx server ({error}); {advice}")
    if length is not None and length <= 0:
        why = f"a context of {length} tokens"
        _fail(f"{url} answers, but not as an mtplx server ({why}); {advice}")
    return Served(url, model, length)


def _first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return "".join(each if each.isprintable() else " " for each in line)


def _write(configuration: Configuration, file: File) -> None:
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
