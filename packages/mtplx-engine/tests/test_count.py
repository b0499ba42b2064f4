"""What a prompt costs, counted without running it."""

import pytest

from mtplx_engine import (
    ChatRequest,
    ContextOverflow,
    Conversation,
    Engine,
    EngineFailed,
    EngineOptions,
    InvalidRequest,
    Limits,
    Message,
    RawText,
    Started,
    TokenIds,
)
from mtplx_engine.conversation import Prompt
from mtplx_engine.tools import Calling, Tool, ToolCall

TOOLS = (Tool("time", "Tells the time.", {"type": "object"}), Tool("weather"))
ASKED = Message("user", "What time is it? 今")
HISTORY = (
    Message("system", "Be brief."),
    ASKED,
    Message("assistant", "", "hm", (ToolCall("time", "{}", "call_1"),)),
    Message("tool", "noon", call_id="call_1"),
)


@pytest.mark.parametrize(
    "prompt",
    [
        RawText("abc"),
        TokenIds((1, 2, 3)),
        Conversation((ASKED,)),
        Conversation((ASKED,), tools=TOOLS),
        Conversation(HISTORY, {"enable_thinking": False}, TOOLS),
    ],
)
@pytest.mark.parametrize("calling", [Calling(), Calling("none")])
def test_the_count_is_what_the_request_then_costs(
    tiny_engine: Engine, prompt: Prompt, calling: Calling
) -> None:
    request = ChatRequest(prompt, limits=Limits(max_tokens=1), calling=calling)
    counted = tiny_engine.count_tokens(request).result()
    started, *_ = tiny_engine.submit(request)
    assert isinstance(started, Started)
    assert counted == started.prompt_tokens


def test_a_prompt_that_does_not_fit_is_counted(qwen_engine: Engine) -> None:
    request = ChatRequest(TokenIds((1,) * (qwen_engine.model.context_length + 5)))
    with pytest.raises(ContextOverflow):
        qwen_engine.submit(request).result()
    counted = qwen_engine.count_tokens(request).result()
    assert counted == qwen_engine.model.context_length + 5


def test_a_wrong_prompt_is_said_to_be_so(qwen_engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="Token ids"):
        qwen_engine.count_tokens(ChatRequest(TokenIds((10**6,)))).result()


def test_a_stopped_engine_counts_nothing(qwen_folder: object) -> None:
    with Engine.open(EngineOptions(model=str(qwen_folder))) as engine:
        pass
    with pytest.raises(EngineFailed):
        engine.count_tokens(ChatRequest(RawText("abc")))
