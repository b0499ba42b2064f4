"""What both ways to generate ask for alike: options, form, scores, ignored fields."""

from collections.abc import Iterable
from typing import Any

from mtplx_client.wire.ollama import OllamaOptions, OllamaRequest
from mtplx_engine.constraint import Grammar, JsonObject, JsonSchema
from mtplx_engine.conversation import Prompt
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.info import ModelInfo
from mtplx_engine.request import ChatRequest
from mtplx_server.errors import bad_request
from mtplx_server.protocols import options
from mtplx_server.protocols.base import Served
from mtplx_server.protocols.fields import FieldTable, check_strict, each_once, extra
from mtplx_server.protocols.ollama.fields import OPTIONS
from mtplx_server.protocols.ollama.thinking import Thinking

_THEIR_NAMES = {"repetition_penalty": "repeat_penalty", "penalty_window": "repeat_last_n"}
_LATEST = ":latest"  # Ollama's clients add it to names without a tag


def check_model(name: str | None, served: Served) -> None:
    """See that the named model is the served one, if the server is strict about it.

    Raises:
        RequestRefused: It is not.
    """
    options.check_model(plain_name(name, served.model), served)


def plain_name(name: str | None, model: ModelInfo) -> str | None:
    """A name without the tag that clients add; None where there is no name."""
    return name.removesuffix(_LATEST) if name and name != model.id else name or None


def ignored_fields(
    body: OllamaRequest, table: FieldTable, others: Iterable[str], served: Served, think: Thinking
) -> list[str]:
    """Paths of all fields without effect, each once.

    Raises:
        RequestRefused: A field is refused, or the server is strict about those without effect.
    """
    found = [*table.ignored(extra(body)), *others]
    if not think.honoured:
        found.append("think")
    if body.options:
        found += [f"options.{name}" for name in OPTIONS.ignored(extra(body.options))]
        if (body.options.num_ctx or 0) > served.model.context_length:
            found.append("options.num_ctx")
    found = each_once(found)
    if served.strict_fields:
        check_strict(found)
    return found


def request(body: OllamaRequest, prompt: Prompt, served: Served) -> ChatRequest:
    """What the engine is asked for.

    Raises:
        RequestRefused: A value makes no sense.
        InvalidRequest: A value is out of range.
    """
    given = _in_our_words(body.options or OllamaOptions())
    stop = (given.stop,) if isinstance(given.stop, str) else given.stop or ()
    try:
        sampling = options.sampling(given)
        limits = options.limits(given, _max_tokens(given), [each for each in stop if each])
        depth, acceptance = options.depth(given, served.model), options.acceptance(given)
        kv = options.kv(given)
    except InvalidRequest as error:
        raise _in_their_words(error) from None
    return ChatRequest(
        prompt,
        sampling,
        limits,
        depth,
        acceptance,
        given.copy_lane,
        logprobs=options.scores(body.logprobs, body.top_logprobs),
        grammar=grammar(body.format),
        kv=kv,
    )


def _in_our_words(given: OllamaOptions) -> OllamaOptions:
    """The options by the names that all protocols have."""
    ours: dict[str, Any] = {}
    if given.repeat_penalty is not None:
        ours["repetition_penalty"] = given.repeat_penalty
    if (given.top_k or 0) < 0:
        ours["top_k"] = 0
    if given.seed == -1:
        ours["seed"] = None
    match given.repeat_last_n:
        case None:
            pass
        case -1:
            ours["penalty_window"] = None
        case 0:
            ours |= {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
        case int(window) if window > 0:
            ours["penalty_window"] = window
        case window:
            text = f"options.repeat_last_n must be -1 or more; got {window}."
            raise InvalidRequest(text, "options.repeat_last_n")
    return given.model_copy(update=ours)


def _in_their_words(error: InvalidRequest) -> InvalidRequest:
    """The same error, of the option that the client sent."""
    name = error.param or ""
    theirs = f"options.{_THEIR_NAMES.get(name, name)}"
    if not name or theirs in str(error):
        return error
    return InvalidRequest(str(error).replace(name, theirs, 1), theirs)


def _max_tokens(given: OllamaOptions) -> int | None:
    most = given.num_predict or 0
    return most if most > 0 else None


def grammar(form: str | dict[str, Any] | None) -> Grammar | None:
    """The form of an answer; None: any.

    Raises:
        RequestRefused: It is not known.
    """
    match form:
        case None | "":
            return None
        case "json":
            return JsonObject()
        case str(other):
            text = f"format must be 'json' or a JSON schema; got {other[:200]!r}."
            raise bad_request(text, param="format")
        case schema:
            return JsonSchema(schema, "format")
