"""What all protocols check of tools and of the parts of a message."""

from mtplx_engine.tools import TOOL_NAME
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
