"""`POST /v1/completions`: what the engine is asked for, and the answers both ways."""

import json
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from openai.types import completion_create_params

from mtplx_client.wire.completions import Completion, CompletionRequest
from mtplx_engine import Engine, EngineOptions
from mtplx_engine.conversation import RawText, TokenIds
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.events import Echo, Likelihood, PromptScored, ScoredToken
from mtplx_engine.request import ChatRequest, Limits
from mtplx_engine.testing import SCRIPTED_MODEL, Hold, Scored, Script, ScriptedEngine
from mtplx_engine.tiny import write_tiny_model
from mtplx_server.errors import RequestRefused, problem_of
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.openai_completions.decode import decode
from mtplx_server.protocols.openai_completions.fields import TABLE

DOCS = Path(__file__).parents[3] / "docs/protocols/openai-completions.md"
PATH = "/v1/completions"


def read(**fields: Any) -> Decoded:
    body = CompletionRequest.model_validate({"prompt": "Once", **fields})
    return decode(body, Served(SCRIPTED_MODEL), "req_1")


def test_a_bare_request_is_for_sixteen_tokens():
    decoded = read()
    assert decoded.requests == (ChatRequest(RawText("Once"), limits=Limits(max_tokens=16)),)
    assert (decoded.choices, decoded.stream) == (1, False)


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("a", [RawText("a")]),
        (["a"], [RawText("a")]),
        (["a", "b"], [RawText("a"), RawText("b")]),
        ([1, 2], [TokenIds((1, 2))]),
        ([[1, 2], [3]], [TokenIds((1, 2)), TokenIds((3,))]),
    ],
)
def test_every_form_of_a_prompt(prompt, prompts):
    assert [each.prompt for each in read(prompt=prompt, n=2).requests] == prompts


def test_scoring_a_prompt():
    (request,) = read(echo=True, logprobs=3, max_tokens=0).requests
    assert (request.logprobs, request.prompt_logprobs, request.echo) == (3, 3, True)
    assert request.limits.max_tokens == 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 0, "echo": True}, "max_tokens"),
        ({"max_tokens": 0, "logprobs": 1}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"logprobs": -1}, "logprobs"),
        ({"logprobs": 129}, "logprobs"),
        ({"prompt": []}, "prompt"),
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"n": 0}, "n"),
    ],
)
def test_what_makes_no_sense_is_named(fields, param):
    with pytest.raises((RequestRefused, InvalidRequest)) as caught:
        read(**fields)
    problem = problem_of(caught.value)
    assert (problem.status, problem.param) == (400, param)


@pytest.mark.parametrize("prompt", [None, 5, [1, "a"], [[1], "a"], [["a"]], [1.5], [[]], {"a": 1}])
def test_what_is_no_prompt_is_refused(serve, prompt):
    reply = serve().post(PATH, json={"prompt": prompt})
    assert reply.status_code in (200, 400)
    if reply.status_code == 400:
        assert reply.json()["error"]["param"].startswith("prompt")


def test_neutral_values_are_accepted():
    read(suffix="", best_of=1, response_format={"type": "text"}, user="me")


def test_the_table_knows_every_field_of_the_openai_sdk():
    known = completion_create_params.CompletionCreateParamsNonStreaming.__annotations__
    known = set(known) | set(completion_create_params.CompletionCreateParamsBase.__annotations__)
    assert known <= set(TABLE.fields)
    assert len(known) > 15


def test_the_documented_table_is_current(golden_part):
    golden_part(DOCS, "fields", TABLE.markdown())


def likely(token: int, text: str, logprob: float) -> Likelihood:
    return Likelihood(token, text, text.encode(), logprob)


A, B = likely(1, "a", -0.5), likely(2, "b", -1.5)
ANSWER = [
    Scored("a", ScoredToken(A, (A, B))),
    Scored("", ScoredToken(likely(3, "<end>", -2.0), (A,))),
]
SCORES = Script(
    [PromptScored((ScoredToken(B, (A,)),)), *ANSWER],
    echo=Echo("ab", ("a", "b")),
    prompt_tokens=2,
)
SCENARIOS = {
    "text": (Script(["a", "", "b c", "d"]), {}),
    "length": (Script(["a"], reason="length"), {}),
    "stop": (Script(["one, "], stop_sequence="two"), {}),
    "empty": (Script([]), {}),
    "echo": (SCORES, {"echo": True}),
    "scores": (Script(ANSWER), {"logprobs": 2}),
    "echo and scores": (SCORES, {"echo": True, "logprobs": 2}),
    "several": (SCORES, {"echo": True, "logprobs": 2, "n": 2, "prompt": ["ab", [1, 2]][:1] * 2}),
}


@pytest.mark.parametrize(("script", "fields"), SCENARIOS.values(), ids=SCENARIOS.keys())
@pytest.mark.parametrize("pacing", [True, False])
def test_the_streamed_answer_is_the_unstreamed_one(serve, script, fields, pacing):
    client = serve(ScriptedEngine(script), stream_pacing=pacing)
    body = {"prompt": "ab", **fields}
    whole = Completion.model_validate_json(client.post(PATH, json=body).text)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    text = client.post(PATH, json=body | options).text
    *frames, end = (each.removeprefix("data: ") for each in text.split("\n\n") if each)
    assert end == "[DONE]"
    *chunks, last = map(Completion.model_validate_json, frames)
    assert (last.choices, last.usage) == ([], whole.usage)
    assert [joined(chunks, at) for at in range(len(whole.choices))] == [
        joined([whole], at) for at in range(len(whole.choices))
    ]


def joined(chunks: list[Completion], at: int) -> tuple[Any, ...]:
    parts = [part for chunk in chunks for part in chunk.choices if part.index == at]
    scores = [part.logprobs for part in parts if part.logprobs is not None]
    ends = [part.finish_reason for part in parts if part.finish_reason]
    lists = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    return (
        "".join(part.text for part in parts),
        ends,
        [[entry for each in scores for entry in getattr(each, name)] for name in lists],
    )


def test_scores_in_full(serve):
    body = {"prompt": "ab", "echo": True, "logprobs": 2, "max_tokens": 2}
    (choice,) = serve(ScriptedEngine(SCORES)).post(PATH, json=body).json()["choices"]
    assert choice == {
        "text": "aba",
        "index": 0,
        "logprobs": {
            "tokens": ["a", "b", "a", "<end>"],
            "token_logprobs": [None, -1.5, -0.5, -2.0],
            "top_logprobs": [
                None,
                {"a": -0.5, "b": -1.5},
                {"a": -0.5, "b": -1.5},
                {"a": -0.5, "<end>": -2.0},
            ],
            "text_offset": [0, 1, 2, 3],
        },
        "finish_reason": "length",
    }


@pytest.fixture
def engine(tmp_path):
    folder = write_tiny_model(tmp_path / "tiny", "qwen3_5")
    with Engine.open(EngineOptions(model=str(folder))) as engine:
        yield engine


def test_a_model_scores_prompts_as_lm_eval_asks_for_it(serve, engine):
    client = serve(engine)
    prompts = [[104, 101, 108, 108, 111], [97, 98, 99]]
    body = {"max_tokens": 1, "logprobs": 1, "echo": True, "temperature": 0, "seed": 1234}
    both = client.post(PATH, json=body | {"prompt": prompts}).json()
    assert both["usage"]["prompt_tokens"] == 8
    for choice, prompt in zip(both["choices"], prompts, strict=True):
        scores = choice["logprobs"]
        assert {len(each) for each in scores.values()} == {len(prompt) + 1}
        assert scores["token_logprobs"][0] is scores["top_logprobs"][0] is None
        for value, top in zip(
            scores["token_logprobs"][1:], scores["top_logprobs"][1:], strict=True
        ):
            assert value in top.values()
            assert value <= max(top.values()) <= 0
        # The answer's token was taken greedily.
        assert scores["token_logprobs"][-1] == max(scores["top_logprobs"][-1].values())
        (alone,) = client.post(PATH, json=body | {"prompt": prompt}).json()["choices"]
        assert alone["logprobs"]["token_logprobs"][1:] == pytest.approx(
            scores["token_logprobs"][1:], abs=1e-4
        )
        only = client.post(PATH, json=body | {"prompt": prompt, "max_tokens": 0}).json()
        assert only["choices"][0]["text"] == bytes(prompt).decode()
        assert only["usage"]["completion_tokens"] == 0
        assert len(only["choices"][0]["logprobs"]["tokens"]) == len(prompt)


def test_bad_tokens_and_long_prompts_are_a_400(serve, engine):
    client = serve(engine)
    for prompt in ([-1], [10**6], [[]], "", [1] * 100_000):
        reply = client.post(PATH, json={"prompt": prompt})
        assert reply.status_code == 400, prompt
        assert json.loads(reply.text)["error"]["message"]


TOO_LONG = {
    "prompt": ["x"] * 10_001,
    "prompt[50]": ["x"] * 50 + [1],
    "prompt[20000]": [1] * 20_000 + [1.5],
    "prompt[2]": [[1], [2], "x"],
    "prompt[1][1]": [[1, 2], [1, "x"]],
}


@pytest.mark.parametrize(("param", "prompt"), TOO_LONG.items(), ids=TOO_LONG)
def test_of_a_prompt_that_may_be_several_things_the_wrong_part_is_named(serve, param, prompt):
    reply = serve().post(PATH, json={"prompt": prompt})
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == param


def test_more_answers_than_anybody_reads_are_refused(serve):
    engine = ScriptedEngine()
    reply = serve(engine).post(PATH, json={"prompt": ["x"] * 1000, "n": 100})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "prompt")
    assert engine.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_one_bad_prompt_ends_the_others_at_once(serve, stream):
    def play(request):
        if request.prompt == RawText("bad"):
            return Script(rejection=InvalidRequest("It is bad.", "prompt"))
        return Script(["a", Hold(Event()), "b"])

    engine = ScriptedEngine(play)
    prompts = ["good"] * 5 + ["bad"] + ["good"] * 5
    reply = serve(engine).post(PATH, json={"prompt": prompts, "n": 2, "stream": stream})
    assert (reply.status_code, reply.json()["error"]["message"]) == (400, "It is bad.")
    assert engine.wait_idle(30)
    assert len(engine.cancelled) == 20


PROMPTS = ["plain", "é!", "!é", "日本 and more", "a😀b", "<|im_end|>x", [195, 169, 33], [258, 97]]


@pytest.mark.parametrize("prompt", PROMPTS, ids=str)
def test_each_token_stands_where_its_offset_says(serve, engine, prompt):
    body = {"prompt": prompt, "echo": True, "logprobs": 20, "max_tokens": 0}
    (choice,) = serve(engine).post(PATH, json=body).json()["choices"]
    scores, text = choice["logprobs"], choice["text"]
    for token, at in zip(scores["tokens"], scores["text_offset"], strict=True):
        if token.startswith("bytes:"):
            # Of a part of a character, where the character begins.
            assert bytes.fromhex(token[8:]) in text[at].encode()
        else:
            assert text.startswith(token, at)
    assert [len(top) in (20, 21) for top in scores["top_logprobs"][1:]] == [True] * (
        len(scores["tokens"]) - 1
    )


def test_a_mark_before_the_text_takes_no_room(serve):
    scored = ScoredToken(likely(1, "a", -0.5), ())
    script = Script([PromptScored((scored,)), "b"], echo=Echo("a", ("<s>", "a")))
    body = {"prompt": "a", "echo": True, "logprobs": 0}
    (choice,) = serve(ScriptedEngine(script)).post(PATH, json=body).json()["choices"]
    assert choice["logprobs"]["tokens"] == ["<s>", "a"]
    assert choice["logprobs"]["text_offset"] == [0, 0]
