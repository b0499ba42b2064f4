"""From a chat request's body to the engine's vocabulary.

Types were checked by the wire model, ranges are checked by the engine's request.
"""

import time
from uuid import uuid4

from mtplx_client.wire.chat import ChatCompletionRequest
from mtplx_engine.conversation import Conversation
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.info import ModelInfo
from mtplx_engine.request import ChatRequest, Limits
from mtplx_server.protocols import openai_options, options
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.fields import check_strict, each_once, extra, meaningful
from mtplx_server.protocols.openai_chat import calling, messages, response_format
from mtplx_server.protocols.openai_chat.encode import ChatEncoder
from mtplx_server.protocols.openai_chat.fields import TABLE
from mtplx_server.protocols.openai_stream import Heading
from mtplx_server.protocols.report import Asked, form
from mtplx_server.protocols.thinking import effort, unknown_variables


def decode(body: ChatCompletionRequest, served: Served, request_id: str) -> Decoded:
    """Read a request.

    Raises:
        RequestRefused: A field is not supported, or the model is not the served one.
        InvalidRequest: A value is out of range.
    """
    options.check_model(body.model, served)
    ignored = _ignored(body, served.model)
    if served.strict_fields:
        check_strict(ignored)
    level = effort(body.reasoning_effort, served.model, "reasoning_effort")
    grammar = response_format.grammar(body.response_format)
    request = ChatRequest(
        Conversation(
            tuple(
                messages.message(each, f"messages[{at}]") for at, each in enumerate(body.messages)
            ),
            body.chat_template_kwargs or {},
            calling.tools(body),
            level,
        ),
        options.sampling(body),
        _limits(body),
        options.depth(body, served.model),
        options.acceptance(body),
        body.copy_lane,
        logprobs=options.scores(body.logprobs, body.top_logprobs),
        grammar=grammar,
        calling=calling.calling(body),
        kv=options.kv(body),
    )
    choices = openai_options.choices(body)
    asked = Asked(
        request_id,
        served.model.id,
        body.model,
        ignored,
        choices,
        form(grammar),
        level,
    )
    heading = Heading(
        id=f"chatcmpl-{uuid4().hex}",
        created=int(time.time()),
        answers=choices,
        include_usage=openai_options.include_usage(body),
        scored=request.logprobs is not None,
        asked=asked,
    )
    return Decoded((request,), choices, bool(body.stream), ChatEncoder(heading))


def _ignored(body: ChatCompletionRequest, model: ModelInfo) -> list[str]:
    """Paths of all fields without effect, at any level, each once."""
    found = TABLE.ignored(extra(body))
    found += messages.ignored(body.messages)
    found += calling.ignored(body)
    if body.stream_options:
        found += [f"stream_options.{name}" for name in meaningful(body.stream_options)]
    if body.reasoning_effort is not None and not model.efforts:
        found.append("reasoning_effort")
    unknown = unknown_variables(body.chat_template_kwargs, model)
    found += [f"chat_template_kwargs.{name}" for name in unknown]
    return each_once(found)


def _limits(body: ChatCompletionRequest) -> Limits:
    name = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
    most: int | None = getattr(body, name)
    if most is not None and most < 1:
        raise InvalidRequest(f"{name} must be 1 or more; got {most}.", name)
    return options.limits(body, most, openai_options.stop(body))
