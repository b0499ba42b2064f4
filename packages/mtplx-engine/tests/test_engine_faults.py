"""Faults and endings: what fails alone, what fails together, and how an engine stops."""

import subprocess
import sys
import threading
from pathlib import Path

from mtplx_engine.backend import mx

import pytest

from mtplx_engine import (
    Cancelled,
    ChatRequest,
    ContextOverflow,
    Conversation,
    Engine,
    EngineError,
    EngineFailed,
    EngineOptions,
    InvalidRequest,
    Limits,
    Message,
    ModelNotFound,
    NonFiniteLogits,
    Sampling,
    TextDelta,
)
from mtplx_engine.tiny import write_tiny_model

GREEDY = Sampling(temperature=0.0)
FORTY = Limits(max_tokens=40)
ENDLESS = Limits(max_tokens=4000)


def ask(
    text: str = "Hello",
    *,
    depth: int | None = None,
    sampling: Sampling = GREEDY,
    limits: Limits = FORTY,
) -> ChatRequest:
    return ChatRequest(Conversation((Message("user", text),)), sampling, limits, depth)


class Faulty:
    """A tokenizer that fails as soon as a token is turned into text."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def decode(self, *_: object, **__: object) -> str:
        raise self._error


def poison(folder: Path) -> None:
    """Make one token's embedding NaN, so that only prompts with it fail."""
    weights = dict(mx.load(str(folder / "model.safetensors")))  # type: ignore[arg-type]
    table = weights["language_model.model.embed_tokens.weight"]
    table[ord("!")] = float("nan")
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})


@pytest.mark.parametrize("depth", [0, 2])
def test_logits_that_are_not_numbers_fail_that_request_only(tmp_path: Path, depth: int) -> None:
    folder = write_tiny_model(tmp_path / "tiny")
    poison(folder)
    with Engine.open(EngineOptions(model=str(folder), mtp="on")) as engine:
        good = engine.submit(ask("fine", depth=depth))
        with pytest.raises(NonFiniteLogits):
            engine.submit(ask("bad!", depth=depth)).result()
        assert good.result().text
        assert engine.status().state == "ready"


def test_call_runs_on_the_thread_that_owns_the_arrays(qwen_engine: Engine) -> None:
    assert qwen_engine.call(lambda: threading.current_thread().name) == "mtplx-mlx"
    with pytest.raises(ZeroDivisionError):
        qwen_engine.call(lambda: 1 // 0)
    assert qwen_engine.submit(ask()).result().text


def test_a_dead_engine_fails_everybody_and_says_so(
    qwen_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Engine.open(EngineOptions(model=str(qwen_folder), max_active=1)) as engine:
        running, waiting = engine.submit(ask(limits=ENDLESS)), engine.submit(ask())
        next(running)

        def die() -> None:
            raise SystemExit("out of the blue")

        with pytest.raises(EngineFailed):
            engine.call(die)
        for generation in (running, waiting):
            with pytest.raises(EngineFailed):
                generation.result()
        assert engine.status().state == "failed"
        assert "out of the blue" in engine.status().reason
        with pytest.raises(EngineFailed):
            engine.submit(ask())
        with pytest.raises(EngineFailed):
            engine.call(lambda: 1)
    assert "the engine thread died" in caplog.text


def test_a_thread_that_dies_in_a_step_fails_that_reader_too(qwen_folder: Path) -> None:
    """The request being stepped is neither waiting nor done; its reader must not hang."""

    with Engine.open(EngineOptions(model=str(qwen_folder))) as engine:
        model = engine._worker._model.result()
        object.__setattr__(model, "tokenizer", Faulty(SystemExit("in the middle of a step")))
        with pytest.raises(EngineFailed, match="in the middle of a step"):
            engine.submit(ask()).result()
        assert engine.status().state == "failed"


def test_status_counts_the_request_being_stepped(qwen_engine: Engine) -> None:
    generation = qwen_engine.submit(ask(limits=ENDLESS))
    while not isinstance(next(generation), TextDelta):
        pass
    for _ in range(50):
        next(generation)
        assert qwen_engine.status().active == 1
    generation.cancel()
    with pytest.raises(Cancelled):
        generation.result()


def test_closing_lets_running_requests_finish(qwen_folder: Path) -> None:
    engine = Engine.open(EngineOptions(model=str(qwen_folder)))
    generation = engine.submit(ask(limits=Limits(max_tokens=30)))
    engine.close(drain_s=60.0)
    assert generation.result().finished.usage.completion_tokens == 30
    with pytest.raises(EngineFailed):
        engine.submit(ask())
    engine.close()


def test_closing_without_patience_cancels(qwen_folder: Path) -> None:
    engine = Engine.open(EngineOptions(model=str(qwen_folder)))
    generation = engine.submit(ask(limits=ENDLESS))
    next(generation)
    engine.close()
    with pytest.raises((Cancelled, EngineFailed)):
        generation.result()


def test_a_model_that_is_not_there_is_an_error_and_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(ModelNotFound):
        Engine.open(EngineOptions(model=str(tmp_path / "nowhere")))
    assert threading.active_count() == before


def test_a_start_that_fails_once_the_model_is_loaded_leaves_no_thread(
    qwen_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise EngineError("not today")

    monkeypatch.setattr("mtplx_engine.runtime.prepare.Preparer", refuse)
    before = threading.active_count()
    with pytest.raises(EngineError, match="not today"):
        Engine.open(EngineOptions(model=str(qwen_folder)))
    assert threading.active_count() == before


@pytest.mark.parametrize("name", ["chat_template", "tokenize", "tools", "messages", "max_length"])
def test_a_request_cannot_replace_the_template(qwen_engine: Engine, name: str) -> None:
    conversation = Conversation((Message("user", "x"),), {name: "{{ 1 / 0 }}"})
    with pytest.raises(InvalidRequest) as caught:
        qwen_engine.submit(ChatRequest(conversation)).result()
    assert caught.value.param == f"chat_template_kwargs.{name}"


def test_text_that_cannot_fit_is_refused_before_it_is_tokenised(qwen_engine: Engine) -> None:
    with pytest.raises(ContextOverflow):
        qwen_engine.submit(ask("x" * 20_000_000)).result()


def test_half_a_surrogate_pair_is_refused(qwen_engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        qwen_engine.submit(ask("\ud800")).result()


def test_a_generation_is_read_once(qwen_engine: Engine) -> None:
    generation = qwen_engine.submit(ask())
    generation.result()
    with pytest.raises(RuntimeError, match="read already"):
        generation.result()


def test_a_drain_without_end_is_possible(qwen_folder: Path) -> None:
    engine = Engine.open(EngineOptions(model=str(qwen_folder)))
    generation = engine.submit(ask())
    engine.close(drain_s=1e12)
    assert generation.result().text


@pytest.mark.parametrize("end", ["", "raise ValueError('uncaught')"])
def test_a_program_that_forgets_to_close_ends_cleanly(qwen_folder: Path, end: str) -> None:
    code = f"""
from mtplx_engine import *
engine = Engine.open(EngineOptions(model={str(qwen_folder)!r}, mtp="on"))
generation = engine.submit(ChatRequest(RawText("hello"), Sampling(), Limits(4000)))
next(generation), next(generation)
{end}
"""
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
        assert run.returncode == bool(end), run.stderr


def test_a_fault_inside_a_request_is_its_own(
    qwen_engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    model = qwen_engine._worker._model.result()
    tokenizer = model.tokenizer
    object.__setattr__(model, "tokenizer", Faulty(RuntimeError("in the depths")))
    with pytest.raises(EngineError, match="in the depths"):
        qwen_engine.submit(ask()).result()
    object.__setattr__(model, "tokenizer", tokenizer)
    assert qwen_engine.submit(ask()).result().text


def test_importing_the_package_does_not_import_mlx() -> None:
    code = "import sys, mtplx_engine; sys.exit('mlx.core' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
