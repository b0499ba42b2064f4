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
        return Script(["A title"])
    call = {"name": shell.name, "arguments": _arguments(shell)}
    return Script(["<tool_call>\n", json.dumps(call), "\n</tool_call>"])


def _arguments(tool: Tool) -> dict[str, Any]:
    schema: Mapping[str, Any] = tool.parameters
    required = {
        *schema.get("required", ()),
        *({"command", "cmd", "commands"} & set(schema["properties"])),
    }
    return {name: _value(name, schema["properties"][name]) for name in required}


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


def main() -> None:
    """Connect a client, let it answer a question, and tell what was seen."""
    asked = json.load(sys.stdin)
    environment, home = asked["environment"], asked["environment"]["HOME"]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    model = replace(SCRIPTED_MODEL, context_length=131_072)
    engine = ScriptedEngine(_talk, model=model)
    with serving(engine) as url:
        connect = [str(MTPLX), "connect", asked["agent"], "--url", url]
        shown = subprocess.run(
            connect, env=os.environ | environment, capture_output=True, text=True
        )
        lines = shown.stdout.splitlines()
        if asked["write"]:
            connect.append("--write")
            subprocess.run(connect, env=os.environ | environment, check=True)
        else:
            exports = [shlex.split(line)[1] for line in lines if line.startswith("export ")]
            environment |= dict(export.split("=", 1) for export in exports)
        command = next(line for line in lines if line.startswith("# Then run: "))
        *before, client = command.removeprefix("# Then run: ").split(" && ")
        runs = [
            _run([asked["program"], *shlex.split(each)[1:]], environment, home) for each in before
        ]
        options = shlex.split(client)[1:]
        words = [asked["program"], *asked["before"], *options, *asked["after"]]
        runs.append(_run(words, environment, home))
    results = [
        message.text
        for request in engine.requests
        if isinstance(request.prompt, Conversation)
        for message in request.prompt.messages
        if message.role == "tool"
    ]
    json.dump({"runs": runs, "results": results}, sys.stdout)


if __name__ == "__main__":
    main()
