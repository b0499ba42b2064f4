"""Reads requests of Responses as the server does, for tests of what becomes of them."""

from dataclasses import replace
from typing import Any

import pytest

from mtplx_client.wire.responses import ResponsesRequest
from mtplx_engine.conversation import Conversation, Message
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.request import ChatRequest
from mtplx_engine.testing import SCRIPTED_MODEL
from mtplx_engine.tools import Tool
from mtplx_server.errors import RequestRefused, problem_of
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.openai_responses.decode import decode
from mtplx_server.protocols.openai_responses.encode import ResponsesEncoder

SERVED = Served(SCRIPTED_MODEL)
PLAIN = Served(replace(SCRIPTED_MODEL, efforts=()))
SKIPS = Served(SCRIPTED_MODEL, skip_hosted_tools=True)


def read(served: Served = SERVED, **fields: Any) -> Decoded:
    return decode(ResponsesRequest.model_validate({"input": "hi", **fields}), served, "req_1")


def asked(served: Served = SERVED, **fields: Any) -> ChatRequest:
    (request,) = read(served, **fields).requests
    return request


def ignored(served: Served = SERVED, **fields: Any) -> list[str]:
    encoder = read(served, **fields).encoder
    assert isinstance(encoder, ResponsesEncoder)
    return encoder.heading.asked.ignored_fields


def problem(served: Served = SERVED, **fields: Any) -> tuple[str | None, str]:
    with pytest.raises((RequestRefused, InvalidRequest)) as caught:
        read(served, **fields)
    found = problem_of(caught.value)
    assert found.status == 400
    return found.param, found.message


def conversation(*items: dict[str, Any], **fields: Any) -> tuple[Message, ...]:
    return prompt(input=list(items), **fields).messages


def tools(served: Served = SERVED, **fields: Any) -> tuple[Tool, ...]:
    return prompt(served, **fields).tools


def prompt(served: Served = SERVED, **fields: Any) -> Conversation:
    found = asked(served, **fields).prompt
    assert isinstance(found, Conversation)
    return found
