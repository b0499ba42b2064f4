"""From a request's body to the engine's vocabulary.

Types were checked by the wire model, ranges are checked by the engine's request.
"""

import time
from dataclasses import dataclass
from uuid import uuid4

from mtplx_client.wire.responses import InputTokensRequest, PromptOptions, ResponsesRequest
from mtplx_engine.conversation import Conversation
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.info import ModelInfo
from mtplx_engine.request import ChatRequest, Limits
from mtplx_server.protocols import options
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.fields import FieldTable, check_strict, each_once, extra, meaningful
from mtplx_server.protocols.openai_responses import items, text_format
from mtplx_server.protocols.openai_responses.calling import calling
from mtplx_server.protocols.openai_responses.encode import ResponsesEncoder
from mtplx_server.protocols.openai_responses.fields import COUNT_TABLE, TABLE
from mtplx_server.protocols.openai_responses.heading import Heading
from mtplx_server.protocols.openai_responses.settings import settings
from mtplx_server.protocols.openai_responses.toolbox import Toolbox
from mtplx_server.protocols.report import Asked, form
from mtplx_server.protocols.thinking import effort, unknown_variables

_SEALED = "reasoning.encrypted_content"
_SCORED = "message.output_text.logprobs"


@dataclass(frozen=True, slots=True)
class _Read:
    """What both endpoints read of a body."""

    conversation: Conversation
    tools: Toolbox
    ignored: list[str]


def decode(body: ResponsesRequest, served: Served, request_id: str) -> Decoded:
    """Read a request.

    Raises:
        RequestRefused: A field is not supported, or the model is not the served one.
        InvalidRequest: A value is out of range.
    """
    read = _read(body, served, TABLE)
    ignored = each_once([*read.ignored, *_not_included(body)])
    if served.strict_fields:
        check_strict(ignored)
    request = ChatRequest(
        read.conversation,
        options.sampling(body),
        _limits(body),
        options.depth(body, served.model),
        options.acceptance(body),
        body.copy_lane,
        logprobs=_logprobs(body),
        grammar=text_format.grammar(body.text),
        calling=calling(body.tool_choice, body.parallel_tool_calls, read.tools),
        kv=options.kv(body),
    )
    asked = Asked(
        request_id,
        served.model.id,
        body.model,
        ignored,
        grammar=form(request.grammar),
        effort=read.conversation.effort,
    )
    heading = Heading(
        id=f"resp_{uuid4().hex}",
        created=int(time.time()),
        settings=settings(body),
        known=read.tools.known,
        seals=_SEALED in (body.include or ()),
        scored=request.logprobs is not None,
        asked=asked,
    )
    return Decoded((request,), 1, bool(body.stream), ResponsesEncoder(heading))


def counted(body: InputTokensRequest, served: Served) -> ChatRequest:
    """Read what is only to be counted.

    Raises:
        RequestRefused: A field is not supported, or the model is not the served one.
        InvalidRequest: A value is out of range.
    """
    read = _read(body, served, COUNT_TABLE)
    if served.strict_fields:
        check_strict(each_once(read.ignored))
    return ChatRequest(
        read.conversation,
        grammar=text_format.grammar(body.text),
        calling=calling(body.tool_choice, body.parallel_tool_calls, read.tools),
    )


def _read(body: PromptOptions, served: Served, table: FieldTable) -> _Read:
    options.check_model(body.model, served)
    ignored = table.ignored(extra(body))
    tools = _tools(body, served)
    transcript = items.transcript(body.instructions, body.input)
    ignored += [*transcript.ignored, *tools.ignored, *_ignored(body, served.model)]
    asked = body.reasoning.effort if body.reasoning else None
    level = effort(asked, served.model, "reasoning.effort")
    conversation = Conversation(
        tuple(transcript.messages), body.chat_template_kwargs or {}, tuple(tools.tools), level
    )
    return _Read(conversation, tools, ignored)


def _tools(body: PromptOptions, served: Served) -> Toolbox:
    tools = Toolbox(served.skip_hosted_tools)
    tools.add(body.tools or (), "tools")
    if not isinstance(body.input, str):
        for at, item in enumerate(body.input or ()):
            if item.type == "additional_tools":
                tools.add(item.tools or (), f"input[{at}].tools")
    return tools


def _ignored(body: PromptOptions, model: ModelInfo) -> list[str]:
    """Paths of fields without effect in what is no list."""
    found: list[str] = []
    if body.text:
        found += [f"text.{name}" for name in meaningful(body.text)]
        if body.text.verbosity not in (None, "medium"):
            found.append("text.verbosity")
        if body.text.format:
            found += [f"text.format.{name}" for name in meaningful(body.text.format)]
    if body.reasoning:
        found += [f"reasoning.{name}" for name in meaningful(body.reasoning)]
        if body.reasoning.effort is not None and not model.efforts:
            found.append("reasoning.effort")
    unknown = unknown_variables(body.chat_template_kwargs, model)
    return found + [f"chat_template_kwargs.{name}" for name in unknown]


def _not_included(body: ResponsesRequest) -> list[str]:
    included = body.include or ()
    found = [f"include.{name}" for name in included if name not in (_SEALED, _SCORED)]
    if body.top_logprobs and _SCORED not in included:
        found.append("top_logprobs")
    return found


def _limits(body: ResponsesRequest) -> Limits:
    most = body.max_output_tokens
    if most is not None and most < 1:
        text = f"max_output_tokens must be 1 or more; got {most}."
        raise InvalidRequest(text, "max_output_tokens")
    return options.limits(body, most, ())


def _logprobs(body: ResponsesRequest) -> int | None:
    # Without the word in `include`, `top_logprobs` is named as ignored, but must make sense.
    top = options.scores(True, body.top_logprobs)
    return top if _SCORED in (body.include or ()) else None
