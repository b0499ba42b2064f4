"""`mtplx serve` with no model named, as a user runs it: a process, a port, the official SDK."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai
import pytest

MTPLX = Path(sys.executable).parent / "mtplx"

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Server:
    url: str
    banner: str
    process: subprocess.Popen[str]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    environment = os.environ | {"MTPLX_BLAS": "auto", "COLUMNS": "200"}
    process = subprocess.Popen(
        [MTPLX, "serve", "--port", "0"], stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stderr is not None
    banner = ""
    while "-d '" not in banner:
        line = process.stderr.readline()
        assert line, f"the server ended early:\n{banner}"
        banner += line
    url = re.search(r"Ready +(http://\S+)", banner)
    assert url is not None
    yield Server(url[1], banner, process)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest


def test_the_banner_says_what_runs_and_why(server: Server) -> None:
    assert "smollm2-135m-instruct" in server.banner
    assert "because no model was named" in server.banner
    assert re.search(r"MTP +on, with the Llama head", server.banner)
    assert re.search(r"Backend +CPU|Backend +Metal|Backend +CUDA", server.banner)


def test_the_curl_line_works_when_pasted(server: Server) -> None:
    command = server.banner[server.banner.index("curl ") :].replace("\\\n", " ")
    reply = subprocess.run(
        shlex.split(command), capture_output=True, text=True, check=True, timeout=120
    )
    assert '"chat.completion"' in reply.stdout


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused") as client:
        yield client


def test_the_official_sdk_streams_a_chat(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="smollm2-135m-instruct",
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        temperature=0,
        max_tokens=32,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "Paris" in text
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 5


def test_mtp_drafts_and_greedy_text_is_that_of_plain_decoding(client: openai.OpenAI) -> None:
    def say(mode: str) -> tuple[str | None, dict[str, object]]:
        reply = client.chat.completions.create(
            model="any",
            messages=[{"role": "user", "content": "Give me three tips for sleeping well."}],
            temperature=0,
            max_tokens=48,
            extra_body={"generation_mode": mode},
        )
        assert reply.model_extra is not None
        return reply.choices[0].message.content, reply.model_extra["mtplx"]

    drafted, statistics = say("mtp")
    plain, _ = say("ar")
    assert statistics["mode"] == "mtp"
    accepted = statistics["accepted"]
    assert isinstance(accepted, list)
    assert sum(accepted) > 0
    assert drafted == plain


def test_health_says_which_paths_run(server: Server) -> None:
    health = httpx.get(f"{server.url}/health").json()
    assert health["status"] == "ok"
    assert health["mtp"] is True
    assert health["backend"]
