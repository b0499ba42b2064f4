"""Which versions are installed."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from mtplx_cli._version import __version__

_DISTRIBUTIONS = (
    "mtplx-engine",
    "mtplx-server",
    "mtplx-client",
    "mtplx-retrieval",
    "mtplx-cli",
    "mlx",
    "mlx-lm",
)


def version_lines() -> Iterator[str]:
    """One line per installed distribution that matters, `mtplx X` first."""
    yield f"mtplx {_installed('mtplx') or __version__}"
    for name in _DISTRIBUTIONS:
        installed = _installed(name)
        if installed is not None:
            yield f"{name} {installed}"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
