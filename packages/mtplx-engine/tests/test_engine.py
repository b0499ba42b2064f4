"""The engine from outside: requests in, events out, whatever happens in between."""

import asyncio
import json
from pathlib import Path

import pytest

from mtplx_engine import (
    Cancelled,
    ChatRequest,
    ContextOverflow,
    Conversation,
    Engine,
    EngineOptions,
    Event,
    Finished,
    InvalidRequest,
    Limits,
    Message,
    Overloaded,
    PrefillProgress,
    RawText,
    Sampling,
    Started,
    TextDelta,
    TokenIds,
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


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.5])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_seeded_answer_does_not_depend_on_the_depth(
    tiny_engine: Engine, temperature: float, seed: int
) -> None:
    sampling = Sampling(temperature=temperature, top_p=0.95, min_p=0.001, seed=seed)
    results = [
        tiny_engine.submit(ask(depth=depth, sampling=sampling, limits=Limits(max_tokens=80)))
        for depth in (0, 1, 2, 3, 8)
    ]
    plain, *drafted = [generation.result() for generation in results]
    assert plain.finished.speculation.mode == "plain"
    for result in drafted:
        assert result.text == plain.text
        assert result.reasoning == plain.reasoning
        assert result.finished.usage == plain.finished.usage
        assert result.finished.reason == plain.finished.reason
        assert sum(result.finished.speculation.accepted) > 0


def test_without_a_seed_answers_differ(qwen_engine: Engine) -> None:
    request = ask(sampling=Sampling(temperature=1.0))
    assert len({qwen_engine.submit(request).result().text for _ in range(4)}) > 1


@pytest.mark.parametrize("temperature", [1e-7, 1e-38, 1e-300])
def test_a_tiny_temperature_is_greedy(qwen_engine: Engine, temperature: float) -> None:
    greedy = qwen_engine.submit(ask()).result().text
    for depth in (0, 2):
        request = ask(depth=depth, sampling=Sampling(temperature=temperature, seed=1))
        assert qwen_engine.submit(request).result().text == greedy


def test_the_order_of_events(qwen_engine: Engine) -> None:
    events = list(qwen_engine.submit(ask("a" * 1200)))
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    progress = [event.done for event in events if isinstance(event, PrefillProgress)]
    assert progress == sorted(progress)
    assert progress[-1] == events[0].prompt_tokens
    assert all(not isinstance(event, Started | Finished) for event in events[1:-1])


def test_async_and_sync_readers_see_the_same(qwen_engine: Engine) -> None:
    request = ask(sampling=Sampling(temperature=1.0, seed=5))

    async def read() -> list[Event]:
        return [event async for event in qwen_engine.submit(request)]

    def text(events: list[Event]) -> str:
        return "".join(event.text for event in events if isinstance(event, TextDelta))

    assert text(asyncio.run(read())) == text(list(qwen_engine.submit(request)))


def test_statistics_add_up(qwen_engine: Engine) -> None:
    finished = qwen_engine.submit(ask(depth=3, limits=Limits(max_tokens=60))).result().finished
    speculation = finished.speculation
    assert speculation.depth == 3
    assert speculation.acceptance == "greedy"
    assert len(speculation.drafted) == len(speculation.accepted) == 3
    # The first token comes from the prompt; every round adds one to what it accepts.
    emitted = 1 + speculation.rounds + sum(speculation.accepted) + speculation.copies_accepted
    assert emitted == finished.usage.completion_tokens
    for judged, accepted in zip(speculation.drafted, speculation.accepted, strict=True):
        assert accepted <= judged
    assert speculation.drafted[1] == speculation.accepted[0]


def test_max_tokens_is_exact_inside_a_round(qwen_engine: Engine) -> None:
    for limit in range(1, 12):
        finished = qwen_engine.submit(ask(depth=3, limits=Limits(max_tokens=limit))).result()
        assert finished.finished.usage.completion_tokens == limit
        assert finished.finished.reason == "length"


@pytest.mark.parametrize("depth", [0, 1, 3, 8])
def test_a_stop_string_cuts_exactly_inside_a_round(qwen_engine: Engine, depth: int) -> None:
    whole = qwen_engine.submit(ask(depth=0, limits=Limits(max_tokens=60))).result().text
    for start in range(5, 40, 3):
        stop = whole[start : start + 3]
        cut = whole.index(stop)
        result = qwen_engine.submit(
            ask(depth=depth, limits=Limits(max_tokens=60, stop=(stop, "never there")))
        ).result()
        assert result.text == whole[:cut]
        assert result.finished.reason == "stop"
        assert result.finished.stop_sequence == stop


def test_usage_of_a_stopped_answer_does_not_depend_on_the_depth(qwen_engine: Engine) -> None:
    whole = qwen_engine.submit(ask(depth=0, limits=Limits(max_tokens=60))).result().text
    limits = Limits(max_tokens=60, stop=(whole[20:23],))
    usages = {
        qwen_engine.submit(ask(depth=depth, limits=limits)).result().finished.usage
        for depth in (0, 1, 2, 3, 5)
    }
    assert len(usages) == 1


def test_the_end_token_ends_the_answer_and_is_not_text(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "tiny")
    generation = folder / "generation_config.json"
    with Engine.open(EngineOptions(model=str(folder))) as engine:
        whole = engine.submit(ask(limits=Limits(max_tokens=40))).result()
        end_token = ord(next(character for character in whole.text[5:] if character.isascii()))
    generation.write_text(json.dumps({"eos_token_id": [end_token]}))
    with Engine.open(EngineOptions(model=str(folder))) as engine:
        results = [
            engine.submit(ask(depth=depth, limits=Limits(max_tokens=40))).result()
            for depth in (0, 1, 3)
        ]
    for result in results:
        assert result.finished.reason == "stop"
        assert result.finished.stop_sequence is None
        assert chr(end_token) not in result.text
        assert whole.text.startswith(result.text)
    assert len({result.finished.usage for result in results}) == 1


def test_prompts_of_every_kind(qwen_engine: Engine) -> None:
    raw = qwen_engine.submit(ChatRequest(RawText("abc"), limits=Limits(max_tokens=3))).result()
    ids = qwen_engine.submit(ChatRequest(TokenIds((97, 98)), limits=Limits(max_tokens=3))).result()
    assert raw.finished.usage.prompt_tokens == 3
    assert ids.finished.usage.prompt_tokens == 2


@pytest.mark.parametrize(
    "prompt", [TokenIds(()), TokenIds((10_000,)), TokenIds((-1,)), RawText("")]
)
def test_a_prompt_that_cannot_be_read_is_refused(
    qwen_engine: Engine, prompt: TokenIds | RawText
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        qwen_engine.submit(ChatRequest(prompt)).result()
    assert caught.value.param == "prompt"


def test_a_prompt_that_fills_the_window_is_refused_with_numbers(qwen_engine: Engine) -> None:
    with pytest.raises(ContextOverflow, match="4096") as caught:
        qwen_engine.submit(ask("x" * 4096)).result()
    assert caught.value.prompt_tokens > 4096


def test_the_window_bounds_the_answer(qwen_engine: Engine) -> None:
    request = ChatRequest(TokenIds((97,) * 4090), GREEDY, Limits(max_tokens=100))
    finished = qwen_engine.submit(request).result().finished
    assert finished.reason == "length"
    assert finished.usage.completion_tokens == 6


def test_a_depth_that_is_too_large_is_refused(qwen_engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="at most 8"):
        qwen_engine.submit(ask(depth=9)).result()


def test_a_template_that_refuses_is_the_callers_error(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "tiny")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["chat_template"] = "{{ raise_exception('only one turn, please') }}"
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    with Engine.open(EngineOptions(model=str(folder))) as engine:
        generation = engine.submit(ask())
        with pytest.raises(InvalidRequest, match="only one turn, please"):
            generation.result()


def test_leading_system_messages_are_joined(qwen_engine: Engine) -> None:
    def prompt_tokens(*messages: Message) -> int:
        request = ChatRequest(Conversation(messages), limits=Limits(max_tokens=1))
        return qwen_engine.submit(request).result().finished.usage.prompt_tokens

    user = Message("user", "hi")
    two = prompt_tokens(Message("system", "one"), Message("system", "two"), user)
    assert two == prompt_tokens(Message("system", "one\n\ntwo"), user)


def test_cancelling_ends_within_a_round(qwen_engine: Engine) -> None:
    generation = qwen_engine.submit(ask(limits=ENDLESS))
    while not isinstance(next(generation), TextDelta):
        pass
    generation.cancel()
    with pytest.raises(Cancelled):
        generation.result()
    assert list(generation) == []
    assert qwen_engine.submit(ask()).result().text


def test_cancelling_while_queued_and_before_start(qwen_folder: Path) -> None:
    options = EngineOptions(model=str(qwen_folder), max_active=1, queue_limit=3)
    with Engine.open(options) as engine:
        running = engine.submit(ask(limits=ENDLESS))
        next(running)
        waiting = engine.submit(ask())
        waiting.cancel()
        with pytest.raises(Cancelled):
            waiting.result()
        running.cancel()
        with pytest.raises(Cancelled):
            running.result()
        assert engine.submit(ask()).result().text


def test_a_full_queue_refuses_at_once_and_recovers(qwen_folder: Path) -> None:
    options = EngineOptions(model=str(qwen_folder), max_active=1, queue_limit=1)
    with Engine.open(options) as engine:
        running, waiting = engine.submit(ask(limits=ENDLESS)), engine.submit(ask())
        with pytest.raises(Overloaded):
            engine.submit(ask())
        status = engine.status()
        assert status.active + status.queued == 2
        running.cancel()
        assert waiting.result().text
        assert engine.submit(ask()).result().text


def test_requests_at_once_give_what_each_gives_alone(qwen_engine: Engine) -> None:
    requests = [
        ask(f"question {i}", depth=i % 4, sampling=Sampling(temperature=1.0, seed=i))
        for i in range(8)
    ]
    alone = [qwen_engine.submit(request).result().text for request in requests]
    together = [qwen_engine.submit(request) for request in requests]
    assert [generation.result().text for generation in together] == alone
