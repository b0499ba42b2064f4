"""lm-eval's own command, whose scores must be those of the engine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from mtplx_engine import ChatRequest, Engine, EngineOptions, Limits, Sampling, ScoredToken, TokenIds

LM_EVAL = Path(sys.executable).parent / "lm_eval"
TASKS = Path(__file__).parent / "tasks"
NAMES = ("tiny_choice", "tiny_perplexity")

Samples = dict[str, list[dict[str, Any]]]

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.open(EngineOptions()) as engine:
        yield engine


@pytest.fixture(scope="module")
def tokenizer(engine: Engine) -> Tokenizer:
    return Tokenizer.from_file(str(Path(engine.model.source) / "tokenizer.json"))


@pytest.fixture(scope="module")
def samples(embedded: str, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """What lm-eval logs of each task. It sends token ids, made by the tokenizer of the folder."""
    folder = tmp_path_factory.mktemp("lm_eval")
    model = f"model=any,base_url={embedded}/completions,tokenizer={engine.model.source}"
    command = [LM_EVAL, "--model", "local-completions", "--model_args", model]
    command += ["--include_path", TASKS, "--tasks", ",".join(NAMES), "--batch_size", "2"]
    command += ["--output_path", folder, "--log_samples"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder)}
    subprocess.run(command, cwd=TASKS, env=os.environ | offline, check=True)
    return {name: read_log(folder, name) for name in NAMES}


def read_log(folder: Path, name: str) -> list[dict[str, Any]]:
    [log] = folder.rglob(f"samples_{name}_*.jsonl")
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def score(engine: Engine, ids: list[int]) -> tuple[ScoredToken, ...]:
    request = ChatRequest(TokenIds(tuple(ids)), Sampling(), Limits(0), prompt_logprobs=1)
    return engine.submit(request).result().prompt_scores


def total(scored: tuple[ScoredToken, ...]) -> float:
    return sum(each.chosen.logprob for each in scored)


def test_choices(engine: Engine, tokenizer: Tokenizer, samples: Samples) -> None:
    assert len(samples["tiny_choice"]) == 3
    for sample in samples["tiny_choice"]:
        question, choices = sample["doc"]["question"], sample["doc"]["choices"]
        read = len(tokenizer.encode(question).ids)
        for choice, [[loglikelihood, greedy]] in zip(choices, sample["resps"], strict=True):
            scored = score(engine, tokenizer.encode(f"{question} {choice}").ids)[read - 1 :]
            assert float(loglikelihood) == pytest.approx(total(scored), abs=1e-3)
            best = all(each.chosen.token == each.top[0].token for each in scored)
            assert str(greedy) == str(best)


def test_perplexity(engine: Engine, tokenizer: Tokenizer, samples: Samples) -> None:
    start = tokenizer.token_to_id("<|im_start|>")  # what the tokenizer says texts begin with
    assert len(samples["tiny_perplexity"]) == 2
    for sample in samples["tiny_perplexity"]:
        scored = score(engine, [start, *tokenizer.encode(sample["doc"]["text"]).ids])
        [[loglikelihood]] = sample["resps"]
        assert float(loglikelihood) == pytest.approx(total(scored), abs=1e-3)
