"""`mtplx connect`: what it says works, and no file of a user is harmed."""

import json
import os
import re
import shlex
import socket
import tomllib
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mtplx_cli.connecting.agent import CannotMerge, Served
from mtplx_cli.connecting.agents import AGENTS
from mtplx_cli.connecting.checking import Unusable, checked_url
from mtplx_cli.connecting.json_format import JsonFormat
from mtplx_cli.connecting.showing import show
from mtplx_cli.connecting.toml_format import TomlFormat
from mtplx_cli.connecting.writing import write_settings
from mtplx_cli.main import app
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


@pytest.fixture
def httpserver():
    """A server that answers everything in one way."""
    with ExitStack() as stack:

        def serve(status, body):
            class Handler(BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(body.encode())

                def log_message(self, *_):
                    pass

            server = stack.enter_context(HTTPServer(("127.0.0.1", 0), Handler))
            Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            return f"http://127.0.0.1:{server.server_port}"

        yield serve


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


@pytest.mark.parametrize("name", ["opencode", "codex"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends_and_the_mark_of_utf_8_stay(name, mark, end, tmp_path):
    file, asked = tmp_path / "file", FILES[name]
    text = b'{\n  "mine": 1\n}\n' if name == "opencode" else b"mine = 1 # why\n"
    file.write_bytes(mark + text.replace(b"\n", end))
    assert write_settings(file, asked.format, asked.settings).changed
    once = file.read_bytes()
    assert once.startswith(mark + text[:1])
    assert once.count(b"\n") == once.count(end) > 3
    assert b"\r" in once or end == b"\n"
    assert not write_settings(file, asked.format, asked.settings).changed


@pytest.mark.parametrize("name", [name for name in FILES if name != "continue"])
def test_a_length_that_is_not_known_replaces_one_that_was(name):
    known, other = FILES[name], AGENTS[name].configure(Served(SERVED.url, SERVED.model)).file
    before = known.format.merge("", known.settings)
    assert "65536" in before
    after = known.format.merge(before, other.settings)
    assert not any(number in after for number in ("65536", "16384"))
    assert known.format.merge(after, other.settings) == after
    assert "null" not in other.format.show(other.settings)


@pytest.mark.parametrize(
    "entry", [{}, {"envKey": "OTHER"}, {"baseUrl": "http://else/v1", "envKey": "OTHER"}]
)
def test_the_entry_of_another_server_is_not_touched(entry):
    held = {"modelProviders": {"openai": [{"id": SERVED.model} | entry]}}
    with pytest.raises(CannotMerge, match=r"modelProviders\.openai\[0\] .*'org/scripted'"):
        JsonFormat().merge(json.dumps(held), FILES["qwen-code"].settings)


@pytest.mark.parametrize("entry", [{"envKey": "MTPLX_API_KEY"}, {"baseUrl": SERVED.openai_url}])
def test_our_own_entry_is_updated(entry):
    held = {"modelProviders": {"openai": [{"id": SERVED.model, "mine": 1} | entry]}}
    new = json.loads(JsonFormat().merge(json.dumps(held), FILES["qwen-code"].settings))
    (model,) = new["modelProviders"]["openai"]
    assert (model["mine"], model["envKey"]) == (1, "MTPLX_API_KEY")


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


def test_no_server_is_one_line_that_says_what_to_do(mtplx):
    shown = mtplx("connect", "codex", "--url", "http://127.0.0.1:9")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.count("\n") == 1
    assert "no mtplx server answers at http://127.0.0.1:9" in shown.stderr
    assert "start `mtplx serve`" in shown.stderr
    assert "--model" in shown.stderr


@pytest.mark.parametrize(
    "arguments", [("nobody",), ("pi", "--url", "here"), ("pi", "--url", "http://[")]
)
def test_a_command_line_that_makes_no_sense_is_2(mtplx, arguments):
    shown = mtplx("connect", *arguments, "--model", "m")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "Traceback" not in shown.stderr


def test_a_url_is_taken_with_its_path_too(mtplx, url):
    plain = mtplx("connect", "opencode", "--url", url).stdout
    assert mtplx("connect", "opencode", "--url", f"{url}/v1/").stdout == plain


CONTROL = ["a\ntouch x", "a\rb", "a\x1b[0m", "a\x85b", "a\u2028b", b"a\xff", "", " "]


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("model", CONTROL)
def test_a_model_of_more_than_one_line_is_refused(name, model):
    shown = CliRunner().invoke(app, ["connect", name, "--model", os.fsdecode(model)])
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "--model" in shown.stderr


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"id": "a\ntouch x"}, "control character"),
        ({"id": ""}, "is empty"),
        ({"id": "m", "context_length": 0}, "a context of 0 tokens"),
        ({"id": "m", "context_length": -5}, "a context of -5 tokens"),
    ],
)
def test_what_a_server_says_is_checked(httpserver, answer, why):
    url = httpserver(200, json.dumps({"data": [answer | {"capabilities": ["chat"]}]}))
    shown = CliRunner().invoke(app, ["connect", "aider", "--url", url])
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "answers, but not as an mtplx server" in shown.stderr
    assert why in shown.stderr


@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_server_of_another_kind_is_called_so(httpserver, status):
    url = httpserver(status, "<html>\x1b[31m</html>")
    shown = CliRunner().invoke(app, ["connect", "aider", "--url", url])
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert f"{url} answers, but not as an mtplx server" in shown.stderr
    assert "\x1b" not in shown.stderr


@pytest.mark.parametrize(
    "url",
    [
        "http://a:b",
        "http://a:0",
        "http://a:65536",
        "http://a:",
        "http://a..b",
        f"http://{'a' * 64}.b",
        "http://a\tb",
        "http://a b",
        "http://a/b c",
        "http://$(touch x)",
        "http://a\n",
        "\nhttp://a",
        "http://a/\ntouch x",
        "http://\udcff",
        "http://[::1",
        "http://[v1.a]",
        "http://a?b",
        "http://a/?",
        "http://a#b",
        "http://user:secret@a",
        "ftp://a",
        "http://",
        "",
    ],
)
def test_a_url_that_is_no_base_is_refused(url):
    with pytest.raises(Unusable):
        checked_url(url)
    shown = CliRunner().invoke(app, ["connect", "aider", "--model", "m", "--url", url])
    assert (shown.exit_code, shown.stdout) == (2, "")


@pytest.mark.parametrize("base", ["http://a", "https://a:1", "http://[::1]:80", "http://a/b"])
@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
def test_a_base_may_end_with_v1(base, end):
    assert checked_url(base + end) == base


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("folder", ["/a\ntouch x", "/a\udcff", "relative"])
def test_a_folder_that_cannot_be_named_is_refused(name, folder, monkeypatch):
    for variable in (FILES[name].place.variable, "HOME"):
        for other in (FILES[name].place.variable, "HOME"):
            monkeypatch.setenv(other, "")
        monkeypatch.setenv(variable, folder)
        for more in ([], ["--write"]):
            shown = CliRunner().invoke(app, ["connect", name, "--model", "m", *more])
            assert shown.exit_code == 1
            assert f"mtplx: the folder in {variable} " in shown.stderr
            assert "Into" not in shown.stdout


def test_no_home_is_said(monkeypatch):
    def nobody(_):
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(Unusable, match="set HOME"):
        FILES["pi"].place.path({})


def test_each_line_of_a_comment_is_a_comment():
    agent, made = AGENTS["aider"], replace(CONFIGURATIONS["aider"], command="a\nb", notes=("c\nd",))
    shown = "\n".join(show(agent, made, {})).splitlines()
    assert all(line.startswith(("# ", "export ")) for line in shown)


def test_proxies_of_the_environment_are_not_asked_for_this_machine(mtplx, url, environment):
    environment |= {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    environment |= {"ALL_PROXY": "nonsense://x", "NO_PROXY": "", "no_proxy": ""}
    assert mtplx("connect", "aider", "--url", url).returncode == 0
    far = mtplx("connect", "aider", "--url", "http://192.0.2.1")
    assert far.returncode == 1
    assert "no mtplx server answers at http://192.0.2.1" in far.stderr
    assert "Traceback" not in far.stderr


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), JSON), st.sampled_from(IN_JSON), st.sampled_from([None, 2, "\t"]))
def test_json_keeps_everything_else(held, name, indent):
    form, settings = JsonFormat(), FILES[name].settings
    once = form.merge(json.dumps(held, indent=indent, ensure_ascii=False), settings)
    assert form.merge(once, settings) == once
    new = json.loads(once)
    assert {key: value for key, value in new.items() if key not in settings} == {
        key: value for key, value in held.items() if key not in settings
    }
    assert new | json.loads(form.show(settings)) == new


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"a": "\\uD800", "b": "é"}', '{"b": "é"}'])
def test_json_keeps_characters(text):
    once = JsonFormat().merge(text, {"c": 1})
    assert json.loads(once.encode()) == json.loads(text) | {"c": 1}


def test_json_keeps_what_is_beside_ours():
    held = {
        "env": {"MINE": "1"},
        "modelProviders": {
            "openai": [
                {"id": "other"},
                5,
                {"id": "org/scripted", "envKey": "MTPLX_API_KEY", "mine": 1},
            ]
        },
    }
    new = json.loads(JsonFormat().merge(json.dumps(held), FILES["qwen-code"].settings))
    assert new["env"] == {"MINE": "1", "MTPLX_API_KEY": "mtplx"}
    other, number, ours = new["modelProviders"]["openai"]
    assert (other, number, ours["mine"]) == ({"id": "other"}, 5, 1)
    assert ours["baseUrl"] == SERVED.openai_url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\n",
        '# mine\r\nx = 1 # why\r\n[a.b]\r\ny = "z"\r\n',
        'model = "old" # mine\n[features]\nweb = true\n',
        'model_providers = { other = { name = "o" } } # mine\n',
        '[model_providers.other]\nname = "o" # mine\n[x]\n[model_providers.mtplx]\nname = "n"\n',
        '[model_providers]\n# mine\n[model_providers.mtplx]\nbase_url = "old"\nextra = {a = 1}\n',
        'model_providers.mtplx.name = "n"\nmodel_providers.other.name = "o" # mine\n',
        "[[hooks]]\na = 1\n[[hooks]]\na = 2\n",
        'model_context_window = 1\nmodel = "m" # mine\n',
    ],
)
def test_toml_keeps_everything_else_and_its_comments(text):
    form, settings = TomlFormat(), FILES["codex"].settings
    once = form.merge(text, settings)
    assert form.merge(once, settings) == once
    held, new = tomllib.loads(text), tomllib.loads(once)
    assert {key: new[key] for key in held if key not in settings} == {
        key: value for key, value in held.items() if key not in settings
    }
    others = held.get("model_providers", {})
    assert new["model_providers"] == others | {
        "mtplx": others.get("mtplx", {}) | settings["model_providers"]["mtplx"]
    }
    assert {key: new[key] for key in settings if key != "model_providers"} == {
        key: value for key, value in settings.items() if key != "model_providers"
    }
    assert once.count("# mine") == text.count("# mine")
    assert once.count("# why") == text.count("# why")


def test_toml_keeps_what_is_not_a_number():
    text = "a = nan # mine\nb = [nan, {c = -nan}]\n"
    assert TomlFormat().merge(text, FILES["codex"].settings).startswith(text)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_its_own_says_the_same_as_a_merge_into_nothing(name):
    file = FILES[name]
    assert file.format.merge("", file.settings) == file.format.show(file.settings)


def test_what_cannot_be_merged_raises_and_nothing_else():
    for text in ("{", "[", '{"a": 1,}', "nonsense", "{'a': 1}"):
        with pytest.raises(CannotMerge):
            JsonFormat().merge(text, {"b": 1})
