"""Server-sent events hold for the simplest of readers: one that only splits lines."""

import json
import sys

import pytest

from mtplx_engine.errors import NonFiniteLogits
from mtplx_engine.testing import Script, ScriptedEngine

LINE_ENDS = [chr(code) for code in range(sys.maxunicode) if len(f"a{chr(code)}b".splitlines()) > 1]
TEXT = "".join(f"a{end}" for end in LINE_ENDS) + "\r\n\n"
BODIES = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/completions": {"prompt": "hi"},
}


def events(serve, path: str, script: Script) -> list[str]:
    client = serve(ScriptedEngine(script), stream_pacing=False)
    with client.stream("POST", path, json=BODIES[path] | {"stream": True}) as response:
        lines = [line for line in response.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    *chunks, end = [line.removeprefix("data: ") for line in lines]
    assert end == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


@pytest.mark.parametrize("path", BODIES)
def test_text_with_every_kind_of_line_end_arrives(serve, path):
    choices = [chunk["choices"][0] for chunk in events(serve, path, Script([TEXT, "b"]))]
    texts = [each.get("text") or each.get("delta", {}).get("content") for each in choices]
    assert "".join(filter(None, texts)) == TEXT + "b"


@pytest.mark.parametrize("path", BODIES)
def test_so_does_an_error(serve, path):
    *_, last = events(serve, path, Script(["a", NonFiniteLogits(TEXT)]))
    assert last["error"]["message"] == TEXT
