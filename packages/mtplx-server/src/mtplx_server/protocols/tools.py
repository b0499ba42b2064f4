"""What all protocols check of tools and of the parts of a message."""

from typing import Any, cast

from mtplx_engine.tools import TOOL_NAME, CallMode
from mtplx_server.errors import bad_request


def check_name(name: str, path: str) -> None:
    """See that a tool can be called by its name.

    Raises:
        RequestRefused: It cannot; the message says where it stands.
    """
    if not TOOL_NAME.fullmatch(name):
        text = f"{path} must be 1 to 128 letters, digits and _ - . : /"
        raise bad_request(f"{text}; got {name[:140]!r}.", param=path)


def unsupported_part(kind: str, path: str) -> Exception:
    """The exception for a part of a message that the model cannot read."""
    if "image" in kind:
        text = f"{path}: the served model has no vision tower, so it cannot read images."
    else:
        text = f"{path}: parts of type {kind!r} are not supported; only text is."
    return bad_request(text, param=path, code="unsupported_value")


def allowed_mode(mode: Any, path: str) -> CallMode:
    """Whether one of the tools that a request allows must be called.

    Raises:
        RequestRefused: It says neither.
    """
    match mode:
        case "auto" | "required":
            return cast(CallMode, mode)
        case _:
            raise bad_request(f"{path} must be 'auto' or 'required'.", param=path)
