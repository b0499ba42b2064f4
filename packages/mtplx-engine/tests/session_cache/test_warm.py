"""Warm turns say what cold ones say, and compute only what they must."""

import random
import time
from pathlib import Path

import pytest

from mtplx_engine import (
    ChatRequest,
    ChatResult,
    Conversation,
    Engine,
    EngineOptions,
    KVQuant,
    Limits,
    Message,
    Sampling,
    SessionCacheOptions,
)
from mtplx_engine.tiny import TinyFamily, write_tiny_model

LETTERS = dict.fromkeys(b"abcdefgh ", 100.0)  # what is said is encoded again as it was drawn


def ask(messages: list[Message], seed: int = 1, **fields: object) -> ChatRequest:
    sampling = Sampling(temperature=0.9, seed=seed, logit_bias=LETTERS)
    options = {"sampling": sampling, "limits": Limits(max_tokens=24), **fields}
    return ChatRequest(Conversation(tuple(messages)), **options)  # type: ignore[arg-type]


def said(result: ChatResult) -> tuple[object, ...]:
    usage = result.finished.usage
    return result.text, result.finished.reason, usage.prompt_tokens, usage.completion_tokens


def settle(engine: Engine) -> None:
    """Wait until what was computed is put away, which happens after the end was told."""
    bank = engine._worker.bank
    while engine.call(lambda: bank.busy):
        time.sleep(0.001)


def random_text(random_: random.Random) -> str:
    return "".join(random_.choices("abcdefgh ", k=random_.randint(1, 90)))


def next_messages(random_: random.Random, before: list[Message], answer: str) -> list[Message]:
    """How a conversation goes on: another turn, a tool round, an edit, a branch, or again."""
    told = [*before, Message("assistant", answer)]
    match random_.choice(["turn", "turn", "turn", "tool", "edit", "branch", "again"]):
        case "turn":
            return [*told, Message("user", random_text(random_))]
        case "tool":
            return [*told, Message("tool", random_text(random_))]
        case "edit":
            at = random_.randrange(1, len(before))
            return [*before[:at], Message("user", random_text(random_)), *before[at + 1 :]]
        case "branch":
            keep = random_.randint(1, len(before))
            return [*before[:keep], Message("user", random_text(random_))]
        case _:
            return before


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ram", [None, 400_000, 150_000])
def test_random_conversations(cold: Engine, folder: Path, seed: int, ram: int | None) -> None:
    random_ = random.Random(seed)
    options = EngineOptions(
        str(folder), mtp="on", session_cache=SessionCacheOptions(ram=ram), prefill_chunk=128
    )
    restored = 0
    with Engine.open(options) as engine:
        histories: list[tuple[list[Message], str]] = []
        for step in range(14):
            if not histories or random_.random() < 0.15:
                messages = [Message("system", "abc " * 20), Message("user", random_text(random_))]
            else:
                messages = next_messages(random_, *random_.choice(histories[-3:]))
            fields = {
                "depth": random_.choice([0, 1, 3]),
                "session": random_.choice([None, "one", "two"]),
                "caching": random_.choice(["keep", "keep", "keep", "read", "off"]),
            }
            request = ask(messages, seed=step, **fields)
            result, expected = engine.submit(request).result(), cold.submit(request).result()
            assert said(result) == said(expected)
            assert result.finished.usage.cached_tokens < result.finished.usage.prompt_tokens
            assert expected.finished.usage.cached_tokens == 0
            restored += result.finished.usage.cached_tokens
            histories.append((messages, result.text))
            ram_status = engine.cache_status().ram
            assert ram_status.bytes <= ram_status.limit
    assert restored > 0, "nothing was ever restored, so this proves nothing"


def test_a_turn_computes_what_is_new(warm: Engine) -> None:
    messages = [Message("system", "abc " * 30), Message("user", "hello")]
    known = 0
    for turn in range(5):
        result = warm.submit(ask(messages, seed=turn, depth=turn % 4)).result()
        usage, restored = result.finished.usage, result.finished.restored
        assert usage.cached_tokens == restored.tokens
        if turn:
            # The last token of an answer may not have been read; all before it was.
            assert known - 1 <= usage.cached_tokens <= known
            assert restored.source == "ram"
            assert restored.cold_because is None
        else:
            assert restored.cold_because == "new"
        known = usage.prompt_tokens + usage.completion_tokens
        messages += [Message("assistant", result.text), Message("user", "go on")]


def test_the_same_prompt_again_computes_one_token(warm: Engine, cold: Engine) -> None:
    messages = [Message("user", "abc " * 40)]
    first = warm.submit(ask(messages, seed=1)).result()
    for seed in (1, 2):
        again = warm.submit(ask(messages, seed=seed)).result()
        assert said(again) == said(cold.submit(ask(messages, seed=seed)).result())
        assert again.finished.usage.cached_tokens == first.finished.usage.prompt_tokens - 1


def test_an_answer_cut_in_a_round_is_kept_to_its_end(warm: Engine, cold: Engine) -> None:
    """A stop string, amid accepted drafts: what follows it in the caches must not be used."""
    messages = [Message("user", "abc " * 20)]
    whole = cold.submit(ask(messages, depth=3)).result().text
    for cut in range(3, 18):
        limits = Limits(max_tokens=24, stop=(whole[cut : cut + 3],))
        first = warm.submit(ask(messages, depth=3, limits=limits)).result()
        assert first.finished.reason == "stop"
        following = [*messages, Message("assistant", first.text), Message("user", "go on")]
        request = ask(following, depth=3, seed=cut)
        result = warm.submit(request).result()
        assert said(result) == said(cold.submit(request).result())
        shared = first.finished.usage.prompt_tokens
        assert result.finished.usage.cached_tokens >= shared


def test_depth_sampling_and_choice_are_no_part_of_what_is_kept(warm: Engine) -> None:
    messages = [Message("user", "abc " * 30)]
    warm.submit(ask(messages, depth=0)).result()
    for depth in (0, 1, 3):
        sampling = Sampling(temperature=0.3 * depth, seed=depth)
        result = warm.submit(ask(messages, depth=depth, sampling=sampling)).result()
        assert result.finished.usage.cached_tokens == result.finished.usage.prompt_tokens - 1


def test_a_plain_turn_leaves_the_head_whole(warm: Engine, cold: Engine) -> None:
    """Drafts after a turn without any are those of a conversation that drafted all along."""
    messages = [Message("user", "abc " * 30)]
    first = warm.submit(ask(messages, depth=0, limits=Limits(max_tokens=80))).result()
    messages += [Message("assistant", first.text), Message("user", "go on")]
    request = ask(messages, depth=3, copy_lane=False)
    drafts = [engine.submit(request).result().finished.speculation for engine in (warm, cold)]
    assert drafts[0] == drafts[1]


def test_several_answers_each_keep_their_own(warm: Engine, cold: Engine) -> None:
    messages = [Message("user", "abc " * 30)]
    answers = [each.result() for each in warm.submit_choices(ask(messages), 3)]
    for seed, answer in enumerate(answers):
        following = [*messages, Message("assistant", answer.text), Message("user", "go on")]
        result = warm.submit(ask(following, seed=seed)).result()
        assert said(result) == said(cold.submit(ask(following, seed=seed)).result())
        kept = answer.finished.usage.prompt_tokens + answer.finished.usage.completion_tokens
        assert result.finished.usage.cached_tokens >= kept - 1


def test_a_request_that_was_left_keeps_what_it_read(folder: Path) -> None:
    options = EngineOptions(str(folder), mtp="on", prefill_chunk=64)
    with Engine.open(options) as engine:
        messages = [Message("user", "abc " * 700)]
        generation = engine.submit(ask(messages))
        for event in generation:
            if getattr(event, "done", 0) >= 640:
                generation.cancel()
                break
        settle(engine)
        limits = Limits(max_tokens=4)
        result = engine.submit(ask(messages, limits=limits)).result()
        assert result.finished.usage.cached_tokens >= 600


def test_side_requests_leave_nothing(warm: Engine) -> None:
    messages = [Message("user", "abc " * 30)]
    for caching in ("read", "off"):
        warm.submit(ask(messages, caching=caching)).result()
        settle(warm)
        assert warm.cache_status().ram.blocks == 0


def test_scoring_a_prompt_computes_all_of_it(warm: Engine) -> None:
    messages = [Message("user", "abc " * 30)]
    warm.submit(ask(messages)).result()
    result = warm.submit(ask(messages, prompt_logprobs=1)).result()
    assert result.finished.restored.cold_because == "scored"
    assert len(result.prompt_scores) == result.finished.usage.prompt_tokens - 1


def test_no_session_hears_of_another(warm: Engine, cold: Engine) -> None:
    """Two conversations that part after the system prompt; each goes on as if it were alone."""
    system = Message("system", "abc " * 30)
    for fact in ("the word is fox", "the word is owl"):
        messages = [system, Message("user", fact)]
        warm.submit(ask(messages, session=fact)).result()
    for fact in ("the word is fox", "the word is owl", "there is no word"):
        messages = [system, Message("user", fact), Message("assistant", "a"), Message("user", "b")]
        result = warm.submit(ask(messages, session=fact)).result()
        assert said(result) == said(cold.submit(ask(messages)).result())
        assert result.finished.restored.tokens >= 120


def test_sessions_are_told_and_forgotten(warm: Engine) -> None:
    system = Message("system", "abc " * 30)
    for name in ("one", "two"):
        warm.submit(ask([system, Message("user", name * 40)], session=name)).result()
    settle(warm)
    sessions = {each.id: each for each in warm.cache_status().sessions}
    assert sessions.keys() == {"one", "two"}
    assert all(each.named and each.turns == 1 and each.bytes for each in sessions.values())
    cleared = warm.clear_session("one").result()
    assert cleared.sessions == 1
    assert cleared.ram_bytes > 0
    assert warm.clear_session("one").result().sessions == 0
    again = warm.submit(ask([system, Message("user", "two" * 40)], session="two")).result()
    assert again.finished.usage.cached_tokens == again.finished.usage.prompt_tokens - 1
    assert warm.clear_cache().result().sessions == 1
    assert warm.cache_status().ram.bytes == 0


def test_a_conversation_outlives_one_shot_requests(folder: Path) -> None:
    with Engine.open(EngineOptions(str(folder), mtp="on")) as probe:
        messages = [Message("user", "abc " * 60)]
        probe.submit(ask(messages)).result()
        settle(probe)
        size = probe.cache_status().ram.bytes
    options = EngineOptions(str(folder), session_cache=SessionCacheOptions(ram=3 * size))
    with Engine.open(options) as engine:
        engine.submit(ask(messages, session="mine")).result()
        for number in range(8):
            engine.submit(ask([Message("user", f"{number} title " * 20)])).result()
        result = engine.submit(ask(messages, session="mine")).result()
        assert result.finished.usage.cached_tokens == result.finished.usage.prompt_tokens - 1
        assert engine.cache_status().ram.evicted > 0


def test_a_session_that_had_to_make_room_is_told(folder: Path) -> None:
    options = EngineOptions(str(folder), session_cache=SessionCacheOptions(ram=80_000))
    with Engine.open(options) as engine:
        for name in ("one", "two", "three", "four"):
            engine.submit(ask([Message("user", name * 60)], session=name)).result()
        again = engine.submit(ask([Message("user", "one" * 60)], session="one")).result()
        assert again.finished.restored.cold_because == "evicted"
        other = engine.submit(ask([Message("user", "xyz" * 60)], session="four")).result()
        assert other.finished.restored.cold_because == "diverged"


@pytest.mark.parametrize("family", ["llama", "qwen3_5"])
def test_each_kv_format_is_kept_apart(tmp_path: Path, family: TinyFamily) -> None:
    folder = write_tiny_model(tmp_path / family, family, head_dim=32)
    messages = [Message("user", "abc " * 40)]
    formats = [None, KVQuant(8, 32), KVQuant(4, 32)]
    off = SessionCacheOptions(ram=0)
    with (
        Engine.open(EngineOptions(str(folder), mtp="on")) as warm,
        Engine.open(EngineOptions(str(folder), mtp="on", session_cache=off)) as cold,
    ):
        for kv in formats:
            first = warm.submit(ask(messages, kv=kv, session="mine")).result()
            reason = first.finished.restored.cold_because
            assert reason == ("new" if kv is None else "kv_format_changed")
        for kv in formats:
            request = ask([*messages, Message("user", "go on")], kv=kv, session="mine", depth=2)
            result = warm.submit(request).result()
            assert said(result) == said(cold.submit(request).result())
            assert result.finished.usage.cached_tokens > 150
