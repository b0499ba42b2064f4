"""What an HTTP client is opened with, the same for both clients."""

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from mtplx_client.errors import ConnectionFailed


@contextmanager
def opening(base_url: str) -> Iterator[bool]:
    """Whether proxies of the environment may be used: not for this machine, which none reaches.

    Raises:
        ConnectionFailed: The URL, or a proxy of the environment, is not one.
    """
    try:
        host = httpx.URL(base_url).host
        # Looking the name up would fail in this way, in the midst of a request.
        host.encode("idna")
        yield not _is_loopback(host)
    except (httpx.InvalidURL, ValueError, ImportError) as error:
        raise ConnectionFailed(f"{base_url!a} cannot be connected to: {error}") from error


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
