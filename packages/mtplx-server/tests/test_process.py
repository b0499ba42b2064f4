"""The server as a process: the port, signals and what happens to running answers."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from mtplx_engine.errors import EngineError
from mtplx_server import AddressInUse, AddressRefused, InvalidSetting, ServerSettings, run
from mtplx_server.process import bind

# The answer is held until a line arrives on standard input.
CHILD = """
import sys, threading
from mtplx_engine.testing import Hold, Script, ScriptedEngine
from mtplx_server import ServerSettings, run

release = threading.Event()
def wait_for_line():
    if sys.stdin.readline():
        release.set()
threading.Thread(target=wait_for_line, daemon=True).start()
engine = ScriptedEngine(Script(["begun, ", Hold(release), "ended"]))
settings = ServerSettings(port=0, drain_s=float(sys.argv[1]))
sys.exit(run(settings, lambda: engine, on_ready=lambda url: print(url, flush=True)))
"""
BODY = {"messages": [{"role": "user", "content": "hi"}], "stream": True}


class Child:
    """A server process and its URL."""

    def __init__(self, drain_s: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", CHILD, str(drain_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def wait_until_refusing(self, wait_for) -> None:
        def refused() -> bool:
            try:
                httpx.get(f"{self.url}/health")
            except httpx.TransportError:
                return True
            return False

        wait_for(refused)

    def end(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@pytest.fixture
def child() -> Iterator:
    started: list[Child] = []

    def start(drain_s: float = 30.0) -> Child:
        started.append(Child(drain_s))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_server_stops_at_once_and_says_nothing(child, number):
    server = child()
    assert httpx.get(f"{server.url}/health").status_code == 200
    server.process.send_signal(number)
    assert server.end() == (0, "")


def test_a_running_answer_is_finished_before_the_server_stops(child, wait_for):
    server = child()
    with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=BODY) as response:
        lines = response.iter_lines()
        next(line for line in lines if "begun" in line)
        server.process.send_signal(signal.SIGINT)
        server.wait_until_refusing(wait_for)
        server.process.stdin.write("go on\n")
        server.process.stdin.flush()
        rest = [line for line in lines if line]
    assert any("ended" in line for line in rest)
    assert rest[-1] == "data: [DONE]"
    assert server.end() == (0, "")


def test_an_answer_that_takes_too_long_is_cancelled_and_told_so(child):
    server = child(drain_s=0.05)
    with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=BODY) as response:
        lines = response.iter_lines()
        next(line for line in lines if "begun" in line)
        server.process.send_signal(signal.SIGINT)
        *_, last, _ = (line for line in lines if line)
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "cancelled"
    assert server.end() == (0, "")


def test_a_second_signal_ends_at_once(child, wait_for):
    server = child(drain_s=1000.0)
    with httpx.stream("POST", f"{server.url}/v1/chat/completions", json=BODY) as response:
        next(line for line in response.iter_lines() if "begun" in line)
        server.process.send_signal(signal.SIGINT)
        server.wait_until_refusing(wait_for)
        server.process.send_signal(signal.SIGINT)
        assert server.end() == (-signal.SIGINT, "")


def never_opened():
    raise AssertionError("the engine must not be opened")


def test_a_busy_port_is_one_clear_line_and_costs_no_loading():
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUse) as caught:
            run(ServerSettings(port=port), never_opened, on_ready=print)
    message = str(caught.value)
    assert f"127.0.0.1:{port}" in message
    assert "--port" in message
    assert "\n" not in message


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_only_this_machine_may_connect(host):
    with pytest.raises(AddressRefused, match="loopback"):
        run(ServerSettings(host=host), never_opened, on_ready=print)


@pytest.mark.parametrize("host", ["no-such-host.invalid", ""])
def test_an_unknown_host_is_refused(host):
    with pytest.raises(AddressRefused, match=f"Cannot listen on {host!r}"):
        bind(host, 0)


def test_localhost_is_a_loopback_address():
    with bind("localhost", 0) as sock:
        assert sock.getsockname()[0] in ("127.0.0.1", "::1")


def test_the_port_is_free_again_when_the_engine_cannot_be_opened():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def broken():
        raise EngineError("no such model")

    with pytest.raises(EngineError, match="no such model"):
        run(ServerSettings(port=port), broken, on_ready=print)
    bind("127.0.0.1", port).close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": -1},
        {"port": 65536},
        {"keepalive_s": 0},
        {"keepalive_s": float("nan")},
        {"drain_s": -1},
        {"drain_s": float("inf")},
        {"max_body_bytes": 0},
    ],
)
def test_settings_that_make_no_sense_are_named(wrong):
    with pytest.raises(InvalidSetting, match=next(iter(wrong))):
        ServerSettings(**wrong)
