"""Decoding speed of the embedded default, by the engine alone."""

import json
import statistics
import time
from collections.abc import Callable

from mtplx_engine.backend import mx

import pytest
from measure import PROMPTS, Compare, chat, record, timed
from mlx_lm import stream_generate

from mtplx_engine import Engine, Generation
from mtplx_engine.models.attach import attach_head
from mtplx_engine.models.locate import locate
from mtplx_engine.models.trunk import load_trunk

TOKENS = 64


def decode_speed(generation: Generation) -> float:
    """Tokens per second after the first one."""
    finished = generation.result().finished
    return (finished.usage.completion_tokens - 1) / finished.timings.decode_s


def test_plain_against_mlx_lm(engine: Engine, compare: Compare) -> None:
    located = locate(None, on_progress=lambda _: None)
    trunk = load_trunk(located.folder)
    prompt = trunk.tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPTS[1]}], add_generation_prompt=True
    )

    def peer() -> float:
        times = []
        for _ in stream_generate(trunk.model, trunk.tokenizer, prompt, max_tokens=TOKENS):
            times.append(time.perf_counter())
        return (len(times) - 1) / (times[-1] - times[0])

    def ours() -> float:
        return decode_speed(engine.submit(chat(PROMPTS[1], depth=0, tokens=TOKENS)))

    compare("plain decoding against mlx_lm.stream_generate", ours, peer, 7)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_mtp_against_plain(engine: Engine, compare: Compare, depth: int) -> None:
    tokens_per_round: list[float] = []

    def speed(depth: int) -> float:
        tokens, seconds, rounds = 0, 0.0, 0
        for prompt in PROMPTS:
            finished = engine.submit(chat(prompt, depth=depth, tokens=TOKENS)).result().finished
            tokens += finished.usage.completion_tokens - 1
            seconds += finished.timings.decode_s
            rounds += finished.speculation.rounds
        if depth:
            tokens_per_round.append(tokens / rounds)
        return tokens / seconds

    name = f"MTP at depth {depth} against plain"
    compare(name, lambda: speed(depth), lambda: speed(0), 3)
    record(f"  tokens a round at depth {depth}", f"{statistics.median(tokens_per_round):.2f}")


@pytest.mark.parametrize("depth", [1, 3])
def test_round_against_the_bare_calls_it_needs(
    engine: Engine, compare: Compare, depth: int
) -> None:
    """A round is one commit, `depth` drafts and one verify pass; everything else is overhead."""
    located = locate(None, on_progress=lambda _: None)
    trunk = load_trunk(located.folder)
    head = attach_head(trunk, located.folder, located.head, "on").head
    assert head is not None
    caches, head_cache = trunk.model.make_cache(), head.make_cache()
    block = mx.array([[500] * (depth + 1)])
    hidden = head.trunk.body(mx.array([[500] * 96]), caches)
    head.read(hidden[:, :-1], mx.array([[500] * 95]), head_cache)

    def calls() -> int:
        state = head.read(hidden[:, -1:], block[:, :1], head_cache)
        for _ in range(depth - 1):
            token = mx.argmax(head.draft_logits(state[0, 0]))[None, None]
            state = head.read(state, token, head_cache)
        last = mx.argmax(head.draft_logits(state[0, 0]))
        verified = mx.argmax(head.trunk.unembed(head.trunk.body(block, caches)[0]), axis=-1)
        mx.eval(last, verified)
        for cache in caches:
            cache.trim(depth + 1)
        head_cache[0].trim(depth)
        return 1

    def bare() -> float:
        return timed(lambda: sum(calls() for _ in range(30)))

    def rounds() -> float:
        finished = engine.submit(chat(PROMPTS[1], depth=depth, tokens=TOKENS)).result().finished
        return finished.speculation.rounds / finished.timings.decode_s

    compare(f"rounds/s at depth {depth} against bare model calls", rounds, bare, 5)


def test_cost_of_a_pass_by_its_width(engine: Engine, compare: Compare) -> None:
    """v(k): what speculation pays for its verify pass."""
    located = locate(None, on_progress=lambda _: None)
    model = load_trunk(located.folder).model
    caches = model.make_cache()
    mx.eval(model(mx.array([[500] * 96]), cache=caches))

    def passes(width: int) -> Callable[[], float]:
        block = mx.array([[500] * width])

        def run() -> int:
            for _ in range(10):
                mx.eval(model(block, cache=caches))
                for cache in caches:
                    cache.trim(width)
            return 10

        return lambda: timed(run)

    one = passes(1)
    costs = {}
    for width in (2, 3, 4, 8, 16):
        wide = passes(width)
        costs[width] = statistics.median(one() / wide() for _ in range(5))
    record(
        "cost of a pass over k tokens, in plain steps",
        json.dumps({k: round(c, 2) for k, c in costs.items()}),
    )
    compare("passes/s over 4 tokens against 1", passes(4), one, 5)
