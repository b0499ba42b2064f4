"""Which names and addresses may go into settings and into lines for a shell."""

import ipaddress
import re
import unicodedata
from urllib.parse import SplitResult, urlsplit

_NOT_TEXT = ("Cc", "Cs", "Zl", "Zp")
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")


class Unusable(Exception):
    """What a user, a variable or a server gave cannot be used; the message says why."""


def checked_text(text: str, what: str) -> str:
    """The text, if it is one line of characters.

    Raises:
        Unusable: It is empty, or a shell or a file could read more into it than one word.
    """
    if not text.strip():
        raise Unusable(f"{what} is empty")
    for character in text:
        if unicodedata.category(character) in _NOT_TEXT:
            raise Unusable(f"{what} holds the control character or stray byte {character!a}")
    return text


def checked_url(url: str) -> str:
    """The base of a server, without the `/v1` that it may end with.

    Raises:
        Unusable: It is no such base.
    """
    checked_text(url, "it")
    try:
        parts = urlsplit(url)
        good = _is_base(parts)
    except ValueError:
        good = False
    if not good:
        raise Unusable("it is not a URL such as http://127.0.0.1:8000")
    if "@" in parts.netloc:
        raise Unusable("it holds a user name or password, which would be shown and kept in files")
    if "?" in url or "#" in url:
        raise Unusable("it has a query or fragment, after which no path can be added")
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _is_base(parts: SplitResult) -> bool:
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        return False
    if any(map(str.isspace, parts.geturl())) or parts.netloc.endswith(":"):
        return False
    if "[" in parts.netloc:
        return ipaddress.ip_address(parts.hostname).version == 6
    return bool(_HOST.fullmatch(parts.hostname.encode("idna").decode().lower()))
