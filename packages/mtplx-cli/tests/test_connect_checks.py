"""Servers, addresses, names and folders that `mtplx connect` must not take as they are."""

import json
import os
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from typer.testing import CliRunner

from mtplx_cli.connecting.agent import Served
from mtplx_cli.connecting.agents import AGENTS
from mtplx_cli.connecting.checking import Unusable, checked_url
from mtplx_cli.connecting.showing import show
from mtplx_cli.main import app
from mtplx_engine.testing import SCRIPTED_MODEL, ScriptedEngine
from mtplx_server.testing import serving

SERVED = Served("http://127.0.0.1:8000", "org/scripted", 65_536)
CONFIGURATIONS = {name: agent.configure(SERVED) for name, agent in AGENTS.items()}
FILES = {name: made.file for name, made in CONFIGURATIONS.items() if made.file}


@pytest.fixture(scope="module")
def url():
    with serving(ScriptedEngine(model=replace(SCRIPTED_MODEL, context_length=65_536))) as url:
        yield url


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
