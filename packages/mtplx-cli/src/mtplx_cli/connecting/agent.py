"""What there is to say about a program that can use the server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mtplx_cli.connecting.checking import Unusable, checked_text

# Clients insist on a key; the server wants none.
API_KEY = "mtplx"

# None: such a key must not be there.
Value = str | int | bool | None | Sequence["Value"] | Mapping[str, "Value"]
Settings = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Served:
    """The server as clients see it.

    Attributes:
        url: Where it listens, without a path.
        model: The id to use in requests.
        context_length: Tokens of prompt and answer together, or None if it is not known.
    """

    url: str
    model: str
    context_length: int | None = None

    @property
    def openai_url(self) -> str:
        """The base of the APIs in the manner of OpenAI."""
        return f"{self.url}/v1"


class Format(Protocol):
    """A notation of settings."""

    def show(self, settings: Settings) -> str:
        """Write settings down, as a file of its own."""

    def merge(self, text: str, settings: Settings) -> str:
        """Put settings into a file and keep everything else that it holds.

        Raises:
            CannotMerge: The file cannot be changed without loss.
        """


class CannotMerge(Exception):
    """A file is broken, or would lose something; the message says what and where."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client keeps a file.

    Attributes:
        folder: Relative to the home folder.
        name: Relative to the folder.
        variable: The environment variable by which the client moves the folder, if it has one.
    """

    folder: str
    name: str
    variable: str | None = None

    def path(self, environment: Mapping[str, str]) -> Path:
        """The file for a user with this environment.

        Raises:
            Unusable: The folder is not known, or its name is none that can be shown or kept.
        """
        moved = environment.get(self.variable, "") if self.variable else ""
        if moved:
            return _checked_folder(moved, self.variable or "") / self.name
        try:
            home = str(Path.home())
        except RuntimeError:
            raise Unusable("the home folder is not known; set HOME") from None
        return _checked_folder(home, "HOME") / self.folder / self.name


def _checked_folder(folder: str, variable: str) -> Path:
    checked_text(folder, f"the folder in {variable}")
    if not Path(folder).is_absolute():
        raise Unusable(f"the folder in {variable} is {folder!r}, which does not begin with /")
    return Path(folder)


@dataclass(frozen=True, slots=True)
class File:
    """Settings that a file must hold."""

    place: Place
    format: Format
    settings: Settings


@dataclass(frozen=True, slots=True)
class Configuration:
    """All that a program needs to use the server.

    With both `variables` and a `file`, either of them is enough.

    Attributes:
        command: What to run then.
        variables: Environment variables to set.
        file: A file to write.
        notes: Sentences that a user should know.
    """

    command: str
    variables: Mapping[str, str] = field(default_factory=dict)
    file: File | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """A program that can use the server.

    Attributes:
        name: What the user types.
        title: What the program is called.
        configure: Makes its configuration; a pure function.
    """

    name: str
    title: str
    configure: Callable[[Served], Configuration]
