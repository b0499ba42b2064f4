"""The list of commands, and the one place where failures become a line and an exit status."""

import contextlib
import io
import os
import sys
from typing import Annotated, NoReturn

import typer

from mtplx_cli.commands.connect import connect
from mtplx_cli.commands.forge import forge
from mtplx_cli.commands.inspect import inspect
from mtplx_cli.commands.run import run
from mtplx_cli.commands.serve import serve
from mtplx_cli.exit_codes import ExitCode
from mtplx_cli.versions import version_lines

app = typer.Typer(
    name="mtplx",
    help="Run language models on this machine, fast and exact, with multi-token prediction.",
    epilog="Start with: mtplx serve",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (serve, run, inspect, connect):
    app.command()(command)
app.add_typer(forge, name="forge")


def _print_versions(wanted: bool) -> None:
    if wanted:
        for line in version_lines():
            typer.echo(line)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_versions, is_eager=True, help="Print versions and exit."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; the console script `mtplx`."""
    _repair_streams()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except SystemExit as end:
        if end.code == ExitCode.INTERRUPTED:
            _end_at_once("interrupted", ExitCode.INTERRUPTED)
        raise
    except OSError as error:
        _end_at_once(f"the output cannot be written: {error.strerror}", ExitCode.ERROR)
    except Exception as error:
        # Imported here, so that a command line without failure does not pay for it.
        from mtplx_engine.errors import EngineError  # noqa: PLC0415
        from mtplx_server.errors import ServerError  # noqa: PLC0415

        if not isinstance(error, EngineError | ServerError):
            raise
        typer.echo(f"mtplx: {error}", err=True)
        sys.exit(ExitCode.ERROR)


def _repair_streams() -> None:
    """Make the standard streams usable: a closed one is None, a narrow one cannot take all text."""
    sys.stdin = sys.stdin or io.StringIO()
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _end_at_once(message: str, code: ExitCode) -> NoReturn:
    """End without waiting for threads, nor for output that cannot be written."""
    typer.echo(f"mtplx: {message}", err=True)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
