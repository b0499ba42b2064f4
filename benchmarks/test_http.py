"""What the server costs on top of the engine."""

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future

import httpx
from measure import PROMPTS, Compare, Way, chat

from mtplx_engine import ChatRequest, Engine, EngineStatus, Generation, ModelInfo, TextDelta
from mtplx_server.testing import serving

TOKENS = 64


class Borrowed:
    """The session's engine behind a server that must not close it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def model(self) -> ModelInfo:
        return self._engine.model

    def submit(self, request: ChatRequest) -> Generation:
        return self._engine.submit(request)

    def submit_batch(self, requests: Sequence[ChatRequest], choices: int) -> tuple[Generation, ...]:
        return self._engine.submit_batch(requests, choices)

    def count_tokens(self, request: ChatRequest) -> Future[int]:
        return self._engine.count_tokens(request)

    def status(self) -> EngineStatus:
        return self._engine.status()

    def close(self, drain_s: float = 0.0) -> None:
        pass


def test_streamed_over_http_against_the_engine(engine: Engine, compare: Compare) -> None:
    body = {
        "messages": [{"role": "user", "content": PROMPTS[1]}],
        "max_tokens": TOKENS,
        "temperature": 0,
        "stream": True,
    }

    def speed(times: list[float]) -> float:
        return (len(times) - 1) / (times[-1] - times[0])

    with serving(Borrowed(engine)) as url, httpx.Client(base_url=url, timeout=None) as client:

        def over_http() -> float:
            times = []
            with client.stream("POST", "/v1/chat/completions", json=body) as response:
                for line in response.iter_lines():
                    if line.startswith("data: {"):
                        choices = json.loads(line.removeprefix("data: "))["choices"]
                        if choices and choices[0]["delta"].get("content"):
                            times.append(time.perf_counter())
            return speed(times)

        def alone() -> float:
            request = chat(PROMPTS[1], Way(None, copy=True), tokens=TOKENS)
            return speed(
                [time.perf_counter() for e in engine.submit(request) if isinstance(e, TextDelta)]
            )

        compare("streamed over HTTP against the engine", over_http, alone, 7)
