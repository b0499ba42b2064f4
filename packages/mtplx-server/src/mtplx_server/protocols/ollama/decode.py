"""From the bodies of `/api/chat` and `/api/generate` to the engine's vocabulary.

Types were checked by the wire models, ranges are checked by the engine's request.
"""

import re
from typing import Any

from mtplx_client.wire.ollama import OllamaChatRequest, OllamaGenerateRequest, OllamaRequest
from mtplx_engine.conversation import Conversation, Message, RawText
from mtplx_engine.request import ChatRequest
from mtplx_server.errors import bad_request
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.fields import extra
from mtplx_server.protocols.ollama import asking
from mtplx_server.protocols.ollama.at_once import AtOnce
from mtplx_server.protocols.ollama.encode import AnswerEncoder, Line, chat_line, generate_line
from mtplx_server.protocols.ollama.fields import CHAT, GENERATE
from mtplx_server.protocols.ollama.messages import ignored, messages, tools
from mtplx_server.protocols.ollama.thinking import Thinking, thinking
from mtplx_server.protocols.report import Asked, form

_NO_TIME = re.compile(r"[-+]?0+(\.0*)?([nuµm]?s|m|h)?")


def chat(body: OllamaChatRequest, served: Served, request_id: str) -> Decoded:
    """Read a request of `/api/chat`.

    Raises:
        RequestRefused: A field is not supported, or the model is not the served one.
        InvalidRequest: A value is out of range.
    """
    asking.check_model(body.model, served)
    think = thinking(body.think, served.model)
    said, offered = body.messages or [], body.tools or []
    unused = asking.ignored_fields(body, CHAT, ignored(said, offered), served, think)
    if not said:
        return _nothing_to_do(body, served, chat_line)
    prompt = Conversation(messages(said), think.variables, tools(offered), think.level)
    request = asking.request(body, prompt, served)
    asked = _asked(body, request, served, request_id, unused, think.level)
    return Decoded((request,), 1, _streams(body), AnswerEncoder(asked, chat_line))


def generate(body: OllamaGenerateRequest, served: Served, request_id: str) -> Decoded:
    """Read a request of `/api/generate`.

    Raises:
        RequestRefused: A field is not supported, or the model is not the served one.
        InvalidRequest: A value is out of range.
    """
    asking.check_model(body.model, served)
    think = _thinking(body, served)
    unused = asking.ignored_fields(body, GENERATE, (), served, think)
    if not body.prompt:
        return _nothing_to_do(body, served, generate_line)
    prompt: RawText | Conversation = RawText(body.prompt)
    if not body.raw:
        system = (Message("system", body.system),) if body.system else ()
        said = (*system, Message("user", body.prompt))
        prompt = Conversation(said, think.variables, effort=think.level)
    request = asking.request(body, prompt, served)
    asked = _asked(body, request, served, request_id, unused, think.level)
    return Decoded((request,), 1, _streams(body), AnswerEncoder(asked, generate_line))


def _thinking(body: OllamaGenerateRequest, served: Served) -> Thinking:
    think = thinking(body.think, served.model)
    if not body.raw:
        return think
    if body.system:
        text = "system must be empty when raw is true: raw text has no place for it."
        raise bad_request(text, param="system", code="unsupported_value")
    # Nothing tells the model, so asking for no thoughts has no effect either.
    return Thinking({}, None, honoured=body.think is None)


def _asked(
    body: OllamaRequest,
    request: ChatRequest,
    served: Served,
    request_id: str,
    unused: list[str],
    level: str | None,
) -> Asked:
    grammar = form(request.grammar)
    return Asked(request_id, served.model.id, body.model, unused, grammar=grammar, effort=level)


def _nothing_to_do(body: OllamaRequest, served: Served, line: Line) -> Decoded:
    """The answer to one who only wants the model in memory, or out of it."""
    asking.request(body, RawText(""), served)  # what is wrong with it is said here, too
    reason = "unload" if _is_no_time(extra(body).get("keep_alive")) else "load"
    done = line(served.model.id, done=True, done_reason=reason)
    return Decoded((), 1, _streams(body), AtOnce(done))


def _is_no_time(keep_alive: Any) -> bool:
    """Whether a span is zero, as a number of seconds or as Go writes spans."""
    if isinstance(keep_alive, str):
        return bool(_NO_TIME.fullmatch(keep_alive))
    return keep_alive is not None and keep_alive == 0 and keep_alive is not False


def _streams(body: OllamaRequest) -> bool:
    return body.stream is not False
