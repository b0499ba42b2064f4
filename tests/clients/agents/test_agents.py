"""Real coding agents, connected with exactly what `mtplx connect` says, finish a round with a tool.

Where an agent is: `MTPLX_TEST_<NAME>` (such as `MTPLX_TEST_CLAUDE_CODE`) has the path of its
program; else it is looked for on `PATH`. One that is not installed is skipped. All run in a
network namespace without a way out, with an empty home.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PLAY = Path(__file__).with_name("play.py")
UNSHARE = ("unshare", "--net", "--map-root-user")
PROMPT = "Please run the echo command for me."


@dataclass(frozen=True, slots=True)
class Case:
    """How an agent is run without a terminal.

    Attributes:
        program: Its command.
        before: Arguments before those of `mtplx connect`.
        after: Arguments after them.
        write: Whether `--write` sets it up, instead of variables.
        tools: Whether it offers tools to the model.
        variables: What it needs further, to stay offline.
    """

    program: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = (PROMPT,)
    write: bool = True
    tools: bool = True
    variables: tuple[tuple[str, str], ...] = ()


CLAUDE = ("-p", PROMPT, "--allowedTools", "Bash")
AIDER = ("--no-check-update", "--analytics-disable", "--yes-always", "--no-git")
CASES = {
    "claude-code": Case("claude", after=CLAUDE),
    "claude-code by variables": Case("claude", after=CLAUDE, write=False),
    "codex": Case("codex", ("exec", "--skip-git-repo-check")),
    "opencode": Case("opencode", ("run",)),
    "pi": Case("pi", ("-p",), variables=(("PI_OFFLINE", "1"),)),
    "qwen-code": Case("qwen", ("--yolo",), ("-p", PROMPT)),
    "continue": Case("cn", ("--auto", "-p")),
    "copilot": Case("copilot", after=("--allow-all-tools", "-p", PROMPT), write=False),
    "cline": Case("cline", ("--json",), write=False),
    "aider": Case("aider", AIDER, ("--message", PROMPT), write=False, tools=False),
}


def _program(agent: str, command: str) -> str:
    variable = "MTPLX_TEST_" + agent.upper().replace("-", "_")
    found = os.environ.get(variable) or shutil.which(command)
    if not found:
        pytest.skip(f"{command} is not installed; {variable} may say where it is")
    return found


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> None:
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"]).returncode:
        pytest.skip("there are no network namespaces here")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_finishes_a_round(name: str, tmp_path: Path) -> None:
    agent, case = name.split(" ")[0], CASES[name]
    asked = {
        "agent": agent,
        "program": _program(agent, case.program),
        "before": case.before,
        "after": case.after,
        "write": case.write,
        "environment": {"HOME": str(tmp_path), "PATH": os.environ["PATH"], **dict(case.variables)},
    }
    played = subprocess.run(
        [*UNSHARE, sys.executable, PLAY], input=json.dumps(asked), capture_output=True, text=True
    )
    assert played.returncode == 0, played.stderr
    told = json.loads(played.stdout)
    assert [run["code"] for run in told["runs"]] == [0] * len(told["runs"]), told
    assert any("answer-42" in result for result in told["results"]) == case.tools, told
    answer = "The round is over." if case.tools else "No tools."
    assert answer in told["runs"][-1]["out"], told
