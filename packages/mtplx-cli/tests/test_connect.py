"""`mtplx connect`: what it says works, and no file of a user is harmed."""

import json
import os
import re
import shlex
import socket
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from mtplx_cli.connecting.agent import Served
from mtplx_cli.connecting.agents import AGENTS
from mtplx_cli.connecting.json_format import JsonFormat
from mtplx_cli.connecting.showing import show
from mtplx_cli.connecting.writing import write_settings
from mtplx_engine.testing import SCRIPTED_MODEL, ScriptedEngine
from mtplx_server.testing import serving

DOCS = Path(__file__).parents[3] / "docs" / "connect.md"
SERVED = Served("http://127.0.0.1:8000", "org/scripted", 65_536)
CONFIGURATIONS = {name: agent.configure(SERVED) for name, agent in AGENTS.items()}
FILES = {name: made.file for name, made in CONFIGURATIONS.items() if made.file}
BY_VARIABLES = [name for name, made in CONFIGURATIONS.items() if made.variables]
FILELESS = sorted(AGENTS.keys() - FILES.keys())
IN_JSON = [name for name, file in FILES.items() if isinstance(file.format, JsonFormat)]
not_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")


@pytest.fixture
def environment(environment):
    """Clients keep their files in the empty home."""
    moved = {file.place.variable for file in FILES.values()}
    return {name: value for name, value in environment.items() if name not in moved}


@pytest.fixture(scope="module")
def url():
    with serving(ScriptedEngine(model=replace(SCRIPTED_MODEL, context_length=65_536))) as url:
        yield url


@pytest.fixture
def file_of(environment):
    def file_of(name):
        return Path(environment["HOME"]) / FILES[name].place.folder / FILES[name].place.name

    return file_of


def files_under(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read(file):
    text = file.read_text()
    return tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)


def test_without_an_agent_it_lists_them(mtplx):
    shown = mtplx("connect")
    assert shown.returncode == 0
    listed = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines())
    assert listed == {agent.name: agent.title for agent in AGENTS.values()}


def test_the_page_has_a_section_for_each_agent():
    sections = re.findall(r"^## (.+) \(`(.+)`\)$", DOCS.read_text(), re.MULTILINE)
    assert [(title, name) for title, name in sections] == [
        (agent.title, agent.name) for agent in AGENTS.values()
    ]


@pytest.mark.parametrize("name", AGENTS)
def test_the_page_shows_what_the_command_shows(golden_part, name):
    lines = "\n".join(show(AGENTS[name], CONFIGURATIONS[name], {}))
    text = lines.replace(str(Path.home()), "~")
    golden_part(DOCS, name, f"```\n{text}\n```\n")


@pytest.mark.parametrize("name", AGENTS)
def test_it_asks_the_server_and_touches_nothing(mtplx, url, name, tmp_path):
    shown = mtplx("connect", name, "--url", url)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert url in shown.stdout
    assert "org/scripted" in shown.stdout or name == "openwebui"
    assert files_under(tmp_path) == {}


@pytest.mark.parametrize(
    "name", ["claude-code", "codex", "opencode", "pi", "qwen-code", "continue"]
)
def test_clients_with_a_setting_for_it_learn_how_long_the_context_is(mtplx, url, name):
    assert "65536" in mtplx("connect", name, "--url", url).stdout
    named = mtplx("connect", name, "--url", url, "--model", "other")
    assert "65536" not in named.stdout
    assert "other" in named.stdout
    assert "the length of the context is not known" in named.stderr


@pytest.mark.parametrize("name", BY_VARIABLES)
def test_what_is_shown_can_be_evaluated_by_a_shell(mtplx, name):
    shown = mtplx("connect", name, "--model", "it's a $(name)")
    words = shlex.split(shown.stdout, comments=True)
    variables = AGENTS[name].configure(Served(SERVED.url, "it's a $(name)")).variables
    assert words == [part for pair in variables.items() for part in ("export", "=".join(pair))]


@pytest.mark.parametrize("name", FILES)
def test_writing_twice_is_writing_once(mtplx, url, name, file_of, tmp_path):
    command = ("connect", name, "--url", url, "--write")
    first = mtplx(*command)
    assert (first.returncode, first.stdout) == (0, "")
    assert f"Wrote    {file_of(name)}\n" in first.stderr
    written = files_under(tmp_path)
    assert list(written) == [file_of(name)]
    assert url.encode() in written[file_of(name)]
    assert f"Is right {file_of(name)}\n" in mtplx(*command).stderr
    assert files_under(tmp_path) == written


def test_each_change_leaves_a_backup_of_its_own(mtplx, file_of):
    file = file_of("opencode")
    file.parent.mkdir(parents=True)
    file.write_text('{"theme": "dark"}')
    file.chmod(0o640)
    states = [file.read_bytes()]
    for model in ("one", "two"):
        assert mtplx("connect", "opencode", "--model", model, "--write").returncode == 0
        states.append(file.read_bytes())
    backups = [file.with_name(f"opencode.json.before-mtplx-{number}") for number in (1, 2)]
    assert sorted(file.parent.iterdir()) == [file, *backups]
    assert [each.read_bytes() for each in (*backups, file)] == states
    assert {each.stat().st_mode & 0o777 for each in (*backups, file)} == {0o640}
    held = json.loads(states[-1])
    assert held["theme"] == "dark"
    assert held["provider"]["mtplx"]["models"].keys() == {"one", "two"}


@pytest.mark.parametrize(
    ("name", "broken", "where"),
    [
        ("claude-code", b'{\n  "env" {}\n}', "line 2, column 9: Expecting ':'"),
        ("claude-code", b"[1]", "the whole file is not an object"),
        ("claude-code", b'{"env": "none"}', "env is not an object"),
        ("claude-code", b'{"a": 1, "a": 2}', 'the key "a" twice'),
        ("claude-code", b'{"a": "\xff"}', "not UTF-8: byte 7"),
        ("opencode", b'{"a": 1, // why\n}', "comments or trailing commas"),
        ("qwen-code", b'{"modelProviders": {"openai": {}}}', "modelProviders.openai is not a list"),
        ("codex", b"a = 1\nmodel = \n", "line 2"),
        ("codex", b'model_providers = "none"', "model_providers is not an object"),
        ("continue", b"models: []\n", "a YAML file that exists"),
        ("pi", b'{"a": ' + b"[" * 3000 + b"]" * 3000 + b"}", "is left as it is"),
        ("pi", b'{"a": ' + b"[" * 200_000, "nested too deeply"),
        ("pi", b'{"a": ' + b"9" * 5000 + b"}", "its number 999"),
        ("pi", b'{"a": 1e400}', "its number 1e400"),
        ("pi", b'{"a": 1e-99999999999999999999}', "its number 1e-999"),
        ("pi", b'{"a": 0.1000000000000000055511151231257827}', "its number 0.1000"),
        ("pi", b'{"a": NaN}', "NaN is no number"),
        ("codex", b"a = {b = 1,\n}\n", "it is not valid TOML 1.0"),
        ("codex", b'a = "\\e"\n', "it is not valid TOML 1.0"),
        ("codex", b"a = " + b"[" * 3000 + b"]" * 3000, "is left as it is"),
        ("codex", b"a = " + b"9" * 5000, "it is not valid TOML 1.0"),
    ],
)
def test_a_file_that_cannot_be_kept_is_not_touched(mtplx, file_of, name, broken, where, tmp_path):
    file = file_of(name)
    file.parent.mkdir(parents=True)
    file.write_bytes(broken)
    shown = mtplx("connect", name, "--model", "org/scripted", "--write")
    assert shown.returncode == 1
    assert f"mtplx: {file} is left as it is: " in shown.stderr
    assert where in shown.stderr
    assert "Traceback" not in shown.stderr
    assert "org/scripted" in shown.stdout
    assert files_under(tmp_path) == {file: broken}


@pytest.mark.parametrize("name", FILELESS)
def test_a_program_without_a_file_says_so(mtplx, name):
    shown = mtplx("connect", name, "--model", "m", "--write")
    assert shown.returncode == 1
    assert shown.stdout
    assert "has no file to write" in shown.stderr


def test_a_link_stays_a_link(mtplx, file_of, tmp_path):
    file, real = file_of("pi"), tmp_path / "dotfiles" / "models.json"
    for path in (file, real):
        path.parent.mkdir(parents=True)
    real.write_text("{}")
    file.symlink_to(real)
    assert mtplx("connect", "pi", "--model", "m", "--write").returncode == 0
    assert file.readlink() == real
    assert "mtplx" in read(real)["providers"]


def test_a_client_that_was_moved_is_followed(mtplx, environment, tmp_path):
    for name, file in FILES.items():
        place = file.place
        environment[place.variable] = str(tmp_path / "moved" / name)
        assert mtplx("connect", name, "--model", "m", "--write").returncode == 0
        assert (tmp_path / "moved" / name / place.name).is_file()


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder"])
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_regular_file_is_not_opened(mtplx, file_of, kind, linked, tmp_path, monkeypatch):
    file = file_of("pi")
    file.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "s" if linked else file
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as held:
            held.bind(os.path.relpath(place))
    elif kind == "folder":
        place.mkdir()
    elif linked:
        place = Path(os.devnull)
    else:
        pytest.skip("a device cannot be made here")
    if linked:
        file.symlink_to(place)
    before = sorted(tmp_path.rglob("*"))
    shown = mtplx("connect", "pi", "--model", "m", "--write")
    assert shown.returncode == 1
    assert "is not a regular file" in shown.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_read_only_file_stays(mtplx, file_of, tmp_path):
    file = file_of("pi")
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    file.chmod(0o444)
    shown = mtplx("connect", "pi", "--model", "m", "--write")
    assert shown.returncode == 1
    assert f"{file} is left as it is: it is read-only" in shown.stderr
    assert files_under(tmp_path) == {file: b"{}"}


@not_root
def test_a_folder_that_may_not_be_written(mtplx, file_of):
    folder = file_of("claude-code").parent
    folder.mkdir()
    folder.chmod(0o500)
    shown = mtplx("connect", "claude-code", "--model", "m", "--write")
    assert shown.returncode == 1
    assert "cannot be changed: Permission denied; all is as it was" in shown.stderr
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be(mtplx, file_of):
    file_of("claude-code").parent.write_text("a file")
    shown = mtplx("connect", "claude-code", "--model", "m", "--write")
    assert shown.returncode == 1
    assert "cannot be changed: Not a directory; all is as it was" in shown.stderr


def test_a_write_that_fails_leaves_all_as_it_was(tmp_path, monkeypatch):
    file = tmp_path / "settings.json"
    file.write_text("{}")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_settings(file, JsonFormat(), {"a": 1})
    assert files_under(tmp_path) == {file: b"{}"}
