"""What the command says about itself, and how quickly."""

import subprocess
import sys

import pytest

from mtplx_cli import __version__


def test_help_lists_the_commands_and_where_to_start(mtplx):
    shown = mtplx("--help")
    assert shown.returncode == 0
    for word in ("serve", "run", "inspect", "connect", "Start with: mtplx serve"):
        assert word in shown.stdout


@pytest.mark.parametrize("command", ["serve", "run", "inspect", "connect"])
def test_each_command_teaches_by_an_example(mtplx, command):
    shown = mtplx(command, "--help")
    assert shown.returncode == 0
    assert f"Example: mtplx {command} " in shown.stdout


def test_without_arguments_it_shows_help_and_fails(mtplx):
    shown = mtplx()
    assert shown.returncode == 2
    assert "Usage: mtplx" in shown.stdout + shown.stderr


def test_versions_come_one_per_line(mtplx):
    lines = mtplx("--version").stdout.splitlines()
    assert lines[0].startswith("mtplx ")
    names = [line.split()[0] for line in lines]
    assert f"mtplx-cli {__version__}" in lines
    assert {"mtplx-engine", "mtplx-server", "mlx", "mlx-lm"} <= set(names)
    assert all(len(line.split()) == 2 for line in lines)


def test_help_loads_nothing_heavy():
    heavy = "{'mlx', 'mlx_lm', 'sanic', 'httpx', 'tomlkit', 'transformers', 'huggingface_hub'}"
    script = f"import sys, mtplx_cli.main; print(sorted({heavy} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert shown.stdout == "[]\n"


def test_the_module_is_the_command_too():
    shown = subprocess.run(
        [sys.executable, "-m", "mtplx_cli", "--version"], capture_output=True, text=True
    )
    assert shown.returncode == 0
    assert shown.stdout.startswith("mtplx ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("srve",),
        ("serve", "--port", "70000"),
        ("serve", "--depth", "-1"),
        ("run",),
        ("run", "hi", "--acceptance", "maybe"),
        ("run", "hi", "--kv-quant", "q3"),
        ("run", "hi", "--max-tokens", "0"),
        ("inspect",),
    ],
)
def test_a_command_line_that_makes_no_sense_is_2(mtplx, arguments):
    shown = mtplx(*arguments)
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert "Traceback" not in shown.stderr
