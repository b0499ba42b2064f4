"""A network of its own, with a scripted server and a client that was connected to it.

Run by `test_agents.py` under `unshare`, so the client reaches nothing but the server. It reads what
to do from stdin and writes what happened to stdout, both as JSON.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mtplx_engine import ChatRequest, Conversation
from mtplx_engine.testing import SCRIPTED_MODEL, Script, ScriptedEngine
from mtplx_engine.tools import Tool
from mtplx_server.testing import serving

MTPLX = Path(sys.executable).parent / "mtplx"
# Only a shell makes 42 of it.
COMMAND = "echo answer-$((6 * 7))"
SHELLS = ("bash", "shell", "exec_command", "run_shell_command", "run_commands", "execute_command")
LIMIT_S = 100


def _talk(request: ChatRequest) -> Script:
    if not isinstance(request.prompt, Conversation):
        return Script(["no conversation"])
    if any(message.role == "tool" for message in request.prompt.messages):
        return Script(["The round ", "is over."])
    shell = next((tool for tool in request.prompt.tools if tool.name.lower() in SHELLS), None)
    if shell is None:
        return Script(["No tools."])
    call = {"name": shell.name, "arguments": _arguments(shell)}
    return Script(["<tool_call>\n", json.dumps(call), "\n</tool_call>"])


def _arguments(shell: Tool) -> dict[str, Any]:
    schema = shell.parameters or {}
    known: Mapping[str, Any] = schema["properties"]
    wanted = known.keys() & {*schema.get("required", ()), "command", "cmd", "commands"}
    return {name: _value(name, known[name]) for name in wanted}


def _value(name: str, schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if name in ("command", "cmd"):
        return ["bash", "-lc", COMMAND] if kind == "array" else COMMAND
    if name == "commands":
        return [COMMAND]
    return {"boolean": False, "number": 1000, "integer": 1000}.get(str(kind), "run echo")


def _run(words: list[str], environment: Mapping[str, str], folder: str) -> dict[str, Any]:
    try:
        ended = subprocess.run(
            words,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired as error:
        return {"words": words, "code": None, "out": str(error.stdout), "err": str(error.stderr)}
    return {"words": words, "code": ended.returncode, "out": ended.stdout, "err": ended.stderr}


def _connect(asked: Mapping[str, Any], url: str) -> tuple[str, dict[str, str]]:
    """Do what `mtplx connect` says; return what to run then, and in which environment."""
    environment = dict(asked["environment"])
    words = [str(MTPLX), "connect", asked["agent"], "--url", url]
    surroundings = os.environ | environment
    shown = subprocess.run(words, env=surroundings, capture_output=True, text=True, check=True)
    lines = shown.stdout.splitlines()
    if asked["write"]:
        subprocess.run([*words, "--write"], env=surroundings, capture_output=True, check=True)
    else:
        exports = [shlex.split(line)[1] for line in lines if line.startswith("export ")]
        environment |= dict(export.split("=", 1) for export in exports)
    begin = "# Then run: "
    return next(line for line in lines if line.startswith(begin))[len(begin) :], environment


def _play(asked: Mapping[str, Any], url: str) -> list[dict[str, Any]]:
    command, environment = _connect(asked, url)
    *before, last = ([asked["program"], *shlex.split(each)[1:]] for each in command.split(" && "))
    last[1:] = [*asked["before"], *last[1:], *asked["after"]]
    return [_run(words, environment, environment["HOME"]) for words in (*before, last)]


def main() -> None:
    """Connect a client, let it answer a question, and tell what was seen."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    engine = ScriptedEngine(_talk, model=replace(SCRIPTED_MODEL, context_length=131_072))
    with serving(engine) as url:
        runs = _play(json.load(sys.stdin), url)
    conversations = [
        request.prompt for request in engine.requests if isinstance(request.prompt, Conversation)
    ]
    results = [
        message.text
        for conversation in conversations
        for message in conversation.messages
        if message.role == "tool"
    ]
    json.dump({"runs": runs, "results": results}, sys.stdout)


if __name__ == "__main__":
    main()
