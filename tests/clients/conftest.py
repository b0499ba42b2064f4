"""Servers for SDKs to talk to: over a tiny random model, the embedded default, or a script.

Each fixture is the URL that an SDK wants as its base.

What random weights say makes no sense. That calls and structured answers are valid all the same is
the work of the grammars, and what is tested here.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtplx_engine import ChatRequest, Conversation, Engine, EngineOptions
from mtplx_engine.testing import Script, ScriptedEngine
from mtplx_engine.tiny import write_tiny_model
from mtplx_server.testing import serving

# LiteLLM otherwise fetches a price list when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

MTPLX = Path(sys.executable).parent / "mtplx"
CALLS = "\n".join(
    f'<tool_call>\n{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}\n</tool_call>'
    for city in ("Rome", "Oslo")
)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")
    # Without the marks of thoughts: random weights may begin to think and never end.
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace("think>", "spare>"))
    engine = Engine.open(EngineOptions(model=str(folder), mtp="on"))
    with serving(engine) as url:
        yield f"{url}/v1"


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("embedded") / "log"
    environment = os.environ | {"MTPLX_BLAS": "auto", "COLUMNS": "200"}
    with log.open("w") as stderr:
        process = subprocess.Popen([MTPLX, "serve", "--port", "0"], stderr=stderr, env=environment)
    try:
        while not (ready := re.search(r"Ready +(http://\S+)", log.read_text())):
            assert process.poll() is None, f"the server ended early:\n{log.read_text()}"
            time.sleep(0.05)
        yield f"{ready[1]}/v1"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


@pytest.fixture(
    params=["tiny", pytest.param("embedded", marks=[pytest.mark.model, pytest.mark.timeout(600)])]
)
def server(request: pytest.FixtureRequest) -> str:
    """Each of the real models in turn."""
    url: str = request.getfixturevalue(request.param)
    return url


def _talk(request: ChatRequest) -> Script:
    assert isinstance(request.prompt, Conversation)
    messages = request.prompt.messages
    results = [message.text for message in messages if message.role == "tool"]
    if results:
        return Script(["It is ", " and ".join(results), "."])
    if request.prompt.tools and request.calling.mode != "none":
        return Script([CALLS[at : at + 5] for at in range(0, len(CALLS), 5)])
    return Script(['{"city": ', '"Rome", ', '"days": 3}'])


@pytest.fixture(scope="session")
def scripted() -> Iterator[str]:
    """Asks for the weather in Rome and Oslo, then tells what it was told.

    Without tools it answers `{"city": "Rome", "days": 3}`.
    """
    with serving(ScriptedEngine(_talk)) as url:
        yield f"{url}/v1"
