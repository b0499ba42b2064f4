"""The house rules that a machine can check."""

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted((ROOT / "packages").iterdir())
SOURCES = sorted((ROOT / "packages").glob("*/src/**/*.py"))
CODE = [*SOURCES, *ROOT.glob("packages/*/tests/**/*.py"), *ROOT.glob("tests/**/*.py")]
MOST_LINES = 400
MOST_FUNCTION_LINES = 60


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", CODE, ids=relative)
def test_files_and_functions_can_be_read_in_one_sitting(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # The options of a command are its signature; only what it does is counted.
            length = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
            assert length <= MOST_FUNCTION_LINES, node.name


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def imported_modules(path: Path) -> list[str]:
    """What a module imports at its top, in order."""
    names: list[str] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_the_backend_is_imported_before_anything_of_mlx(path: Path) -> None:
    """Whoever imports `mlx.core` first decides which BLAS it uses, and mlx-lm imports it."""
    names = imported_modules(path)
    mlx = [i for i, name in enumerate(names) if re.match(r"(mlx|mlx_lm)(\.|$)", name)]
    door = [i for i, name in enumerate(names) if name.startswith("mtplx_engine.backend.")]
    if mlx and path.name != "backend.py":
        assert door, "imports mlx or mlx-lm without the backend"
        assert door[0] < mlx[0]
        assert not {"mlx.core", "mlx.nn"} & set(names)


@pytest.mark.parametrize("package", PACKAGES, ids=relative)
def test_exports_are_sorted_and_there(package: Path) -> None:
    module = importlib.import_module(package.name.replace("-", "_"))
    exported: list[str] = module.__all__
    assert exported == sorted(exported)
    for name in exported:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES, ids=relative)
def test_a_package_is_complete(package: Path) -> None:
    source = package / "src" / package.name.replace("-", "_")
    for path in (source / "py.typed", package / "README.md", package / "CHANGELOG.md"):
        assert path.is_file()
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def declared(path: Path) -> dict[str, str]:
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    matches = (re.fullmatch(r"(mtplx-\w+)(.*)", item) for item in project["dependencies"])
    return {match[1]: match[2] for match in matches if match}


def test_siblings_depend_on_each_other_by_range_and_in_one_direction() -> None:
    below = {
        "mtplx-engine": set(),
        "mtplx-retrieval": set(),
        "mtplx-client": set(),
        "mtplx-server": {"mtplx-engine", "mtplx-retrieval", "mtplx-client"},
        "mtplx-cli": {"mtplx-server", "mtplx-engine", "mtplx-client"},
    }
    for package in PACKAGES:
        siblings = declared(package / "pyproject.toml")
        assert set(siblings) == below[package.name]
        assert all(re.fullmatch(r">=\d+\.\d+,<\d+\.\d+", r) for r in siblings.values())
    assert set(declared(ROOT / "pyproject.toml")) == set(below)


def test_every_decision_has_context_choice_and_price() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert decisions
    for number, path in enumerate(decisions, start=1):
        assert path.name.startswith(f"{number:04}-")
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {number}. ")
        assert all(f"**{part}.**" in text for part in ("Context", "Choice", "Price")), path.name


def test_every_link_and_path_in_the_pages_is_there() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_ci_runs_the_very_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [line.split("#")[0].strip() for line in readme.splitlines() if "hatch run" in line]
    command = next(line for line in commands if line.endswith("hatch run test"))
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
