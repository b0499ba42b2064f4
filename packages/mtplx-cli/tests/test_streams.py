"""Standard streams that are closed, full or narrow, and arguments that make no sense."""

import subprocess

import pytest

NOT_MODELS = ["a" * 300, "~nosuchuser/x", "a/b--c", "a/b..c", "a/" + "b" * 120, "\u4e16/x", ""]


def shell(environment, mtplx_path, line):
    return subprocess.run(
        ["bash", "-c", f"{mtplx_path} {line}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def line(environment, mtplx_path):
    return lambda text: shell(environment, mtplx_path, text)


def assert_one_line(shown):
    assert shown.returncode in (1, 2)
    assert "Traceback" not in shown.stderr
    if shown.returncode == 1:
        assert len(shown.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("name", NOT_MODELS)
def test_names_that_are_no_models(mtplx, name):
    assert_one_line(mtplx("inspect", name))
    assert_one_line(mtplx("run", "hi", "--model", name))


@pytest.mark.parametrize("host", ["a..b", "a" * 300, "0.0.0.0", "::"])
def test_hosts_that_cannot_be_listened_on(mtplx, tiny_folder, host):
    shown = mtplx("serve", tiny_folder, "--host", host, "--port", "0")
    assert shown.returncode == 1
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize("command", ["run hi --max-tokens 4 --model {}", "inspect {}", "--version"])
def test_a_full_disk_behind_stdout(line, tiny_folder, command):
    shown = line(command.format(tiny_folder) + " >/dev/full")
    assert_one_line(shown)
    assert "No space left" in shown.stderr


def test_closed_streams(line, tiny_folder):
    assert line(f"run hi --max-tokens 4 --model {tiny_folder} >&-").returncode == 0
    assert line(f"run hi --max-tokens 4 --model {tiny_folder} 2>&-").returncode == 0
    assert_one_line(line(f"run - --model {tiny_folder} <&-"))


def test_a_terminal_that_knows_no_unicode(environment, mtplx_path, tiny_folder):
    narrow = environment | {"PYTHONIOENCODING": "ascii"}
    for flag in ("", " --json"):
        shown = shell(
            narrow, mtplx_path, f"run hi --seed 1 --max-tokens 30 --model {tiny_folder}{flag}"
        )
        assert shown.returncode == 0
        assert shown.stdout.isascii()


def test_a_prompt_that_is_not_text(line, tiny_folder):
    shown = line(f"run $'\\xff' --model {tiny_folder}")
    assert_one_line(shown)
    assert "surrogate" in shown.stderr
