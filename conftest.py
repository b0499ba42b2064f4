"""Settings that every test of the workspace shares."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

# With MLX's own BLAS, a forward pass over k tokens equals k passes over one, bit for bit, so tests
# of identity can demand identity. Tests of the embedded default run it in a process of its own.
os.environ.setdefault("MTPLX_BLAS", "mlx")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the switch that renews golden files."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write golden files and the generated parts of pages instead of comparing them",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with a file in the repository."""
    update: bool = request.config.getoption("--update-golden")

    def compare(path: Path, text: str) -> None:
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing; see --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def golden_part(golden: Callable[[Path, str], None]) -> Callable[[Path, str, str], None]:
    """Compares a text with what stands on a page between `<!-- name -->` and `<!-- /name -->`."""

    def compare(page: Path, name: str, text: str) -> None:
        whole = page.read_text(encoding="utf-8")
        part = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        assert part.search(whole), f"{page} has no part {name!r}"
        golden(page, part.sub(lambda found: found[1] + text + found[2], whole))

    return compare
