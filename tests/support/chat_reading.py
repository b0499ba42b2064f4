"""Reads chat requests as the server does, for tests of what becomes of them."""

from dataclasses import replace
from typing import Any

import pytest

from mtplx_client.wire.chat import ChatCompletionRequest
from mtplx_engine.conversation import Conversation, Message
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import ChatRequest
from mtplx_engine.testing import SCRIPTED_MODEL
from mtplx_server.errors import RequestRefused, problem_of
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.openai_chat.decode import decode
from mtplx_server.protocols.openai_chat.encode import ChatEncoder

HI = {"role": "user", "content": "hi"}
SERVED = Served(SCRIPTED_MODEL)
PLAIN = Served(replace(SCRIPTED_MODEL, efforts=()))
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
TIME = {"type": "function", "function": {"name": "time"}}


def read(served: Served = SERVED, **fields: Any) -> Decoded:
    body = ChatCompletionRequest.model_validate({"messages": [HI], **fields})
    return decode(body, served, "req_1")


def asked(served: Served = SERVED, **fields: Any) -> ChatRequest:
    (request,) = read(served, **fields).requests
    return request


def ignored(served: Served = SERVED, **fields: Any) -> list[str]:
    encoder = read(served, **fields).encoder
    assert isinstance(encoder, ChatEncoder)
    return encoder.heading.asked.ignored_fields


def problem(**fields: Any) -> tuple[str | None, str]:
    with pytest.raises((RequestRefused, InvalidRequest)) as caught:
        read(**fields)
    found = problem_of(caught.value)
    assert found.status == 400
    return found.param, found.message


def conversation(*messages: dict[str, Any]) -> tuple[Message, ...]:
    prompt = asked(messages=list(messages)).prompt
    assert isinstance(prompt, Conversation)
    return prompt.messages
