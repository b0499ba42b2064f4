"""What the engine adds to the model calls that it makes."""

import time

from mtplx_engine.backend import mx

import pytest
from bare import Bare
from measure import PLAIN, PROMPTS, TOKENS, TURNS, Compare, Way, chat, keep, timed
from mlx_lm import stream_generate

from mtplx_engine import Engine


def test_plain_against_mlx_lm(engine: Engine, bare: Bare, compare: Compare) -> None:
    tokenizer = bare.trunk.tokenizer
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPTS[1]}], add_generation_prompt=True
    )

    def peer() -> float:
        times = []
        for _ in stream_generate(bare.trunk.model, tokenizer, prompt, max_tokens=TOKENS):
            times.append(time.perf_counter())
        return (len(times) - 1) / (times[-1] - times[0])

    def ours() -> float:
        finished = engine.submit(chat(PROMPTS[1], PLAIN)).result().finished
        return (finished.usage.completion_tokens - 1) / finished.timings.decode_s

    ratio = compare("plain decoding against mlx_lm.stream_generate", ours, peer, 2 * TURNS - 1)
    keep(round(ratio, 3), "plain_against_mlx_lm")


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_round_against_the_bare_calls_it_needs(
    engine: Engine, bare: Bare, compare: Compare, depth: int
) -> None:
    """A round is one commit, `depth` drafts and one verify pass; everything else is overhead."""
    head = bare.head
    caches, head_cache = bare.trunk.model.make_cache(), head.make_cache()
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

    def bare_rounds() -> float:
        return timed(lambda: sum(calls() for _ in range(TOKENS // 3)))

    def rounds() -> float:
        finished = engine.submit(chat(PROMPTS[1], Way(depth))).result().finished
        return finished.speculation.rounds / finished.timings.decode_s

    what = f"rounds/s at depth {depth} against bare model calls"
    ratio = compare(what, rounds, bare_rounds, TURNS)
    keep(round(ratio, 3), "rounds_against_bare_calls", str(depth))
