"""A configuration as text, for people to read and for a shell to evaluate."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from mtplx_cli.connecting.agent import Agent, Configuration, File


def show(
    agent: Agent, configuration: Configuration, environment: Mapping[str, str]
) -> Iterator[str]:
    """Lines that say what to set and what to run."""
    file = configuration.file
    path = file.place.path(environment) if file else None
    for name, value in configuration.variables.items():
        yield f"export {name}={shlex.quote(value)}"
    if file and path and not configuration.variables:
        yield from show_file(path, file)
    yield _comment(f"Then run: {configuration.command}")
    for note in configuration.notes:
        yield _comment(note)
    if path:
        yield _comment(f"With --write, the settings of {agent.title} go into {path}.")


def show_file(path: Path, file: File) -> Iterator[str]:
    """Lines that say what a file must hold."""
    yield _comment(f"Into {path}:")
    yield file.format.show(file.settings).rstrip("\n")


def _comment(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.splitlines())
