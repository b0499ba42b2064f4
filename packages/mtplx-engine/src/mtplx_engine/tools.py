"""Functions that a model may ask its caller to run. Plain values: no MLX, no HTTP."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mtplx_engine.errors import InvalidRequest

# What every dialect can write and read. OpenAI allows a part of it.
TOOL_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")

CallMode = Literal["auto", "none", "required"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model is told of.

    Attributes:
        name: What a call names.
        description: What it does, for the model.
        parameters: JSON schema of the arguments, an object; None: it takes none.
        strict: Whether calls of it must keep to the schema.
        where: What errors call the parameters; empty: by the tool's place among the tools.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    strict: bool = False
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that an assistant made earlier in the conversation.

    Attributes:
        name: Of the function.
        arguments: JSON text, usually of an object.
        id: What the message with its result refers to.
    """

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Calling:
    """Whether and what the model may call.

    Attributes:
        mode: `auto` leaves it to the model, `none` forbids calls, `required` wants at least one.
        allowed: Names of the tools that may be called; None: all.
        parallel: Whether one answer may hold several calls.
    """

    mode: CallMode = "auto"
    allowed: tuple[str, ...] | None = None
    parallel: bool = True


def check_calling(tools: tuple[Tool, ...], calling: Calling) -> None:
    """See that names are unique and known.

    Raises:
        InvalidRequest: They are not, or cannot be called so; the message names them.
    """
    known: set[str] = set()
    for tool in tools:
        if not TOOL_NAME.fullmatch(tool.name):
            text = (
                f"{tool.name[:200]!r} is no name of a tool: 1 to 128 letters, digits and _ - . : /"
            )
            raise InvalidRequest(text, "tools")
        if tool.name in known:
            raise InvalidRequest(f"tools holds {tool.name!r} more than once.", "tools")
        known.add(tool.name)
    unknown = next((name for name in calling.allowed or () if name not in known), None)
    if unknown is not None:
        text = f"tool_choice names {unknown[:200]!r}, which is not among the tools."
        raise InvalidRequest(text, "tool_choice")
    if calling.mode == "required" and (not tools or calling.allowed == ()):
        text = "tool_choice requires a call, but there is nothing that may be called."
        raise InvalidRequest(text, "tool_choice")
