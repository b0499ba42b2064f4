"""Thoughts in the form that clients keep without reading them, and send back.

Nothing is secret here: clients that send back only `encrypted_content` would lose the thoughts
otherwise.
"""

from base64 import b64decode, b64encode

_MARK = "mtplx:"


def sealed(text: str) -> str:
    """A text in that form."""
    return _MARK + b64encode(text.encode()).decode()


def opened(content: str) -> str | None:
    """The text; None if it is not one of ours."""
    if not content.startswith(_MARK):
        return None
    try:
        return b64decode(content.removeprefix(_MARK), validate=True).decode()
    except ValueError:
        return None
