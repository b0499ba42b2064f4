"""From a completion request's body to the engine's vocabulary."""

import time
from collections.abc import Sequence
from uuid import uuid4

from mtplx_client.wire.completions import CompletionRequest
from mtplx_engine.conversation import Prompt, RawText, TokenIds
from mtplx_engine.request import ChatRequest
from mtplx_server.errors import bad_request
from mtplx_server.protocols import openai_options, options
from mtplx_server.protocols.base import Decoded, Served
from mtplx_server.protocols.fields import check_strict, each_once, extra, meaningful
from mtplx_server.protocols.openai_completions.encode import CompletionEncoder
from mtplx_server.protocols.openai_completions.fields import TABLE
from mtplx_server.protocols.openai_stream import Heading
from mtplx_server.protocols.report import Asked

_MAX_TOKENS = 16  # OpenAI's own default
_MAX_ANSWERS = 2048  # to all prompts; each costs the server something before its turn comes


def decode(body: CompletionRequest, served: Served, request_id: str) -> Decoded:
    """Read a request.

    Raises:
        RequestRefused: A field is not supported, or the model is not the served one.
        InvalidRequest: A value is out of range.
    """
    options.check_model(body.model, served)
    ignored = TABLE.ignored(extra(body))
    if body.stream_options:
        ignored += [f"stream_options.{name}" for name in meaningful(body.stream_options)]
    ignored = each_once(ignored)
    if served.strict_fields:
        check_strict(ignored)
    prompts, choices = _prompts(body.prompt), openai_options.choices(body)
    if len(prompts) * choices > _MAX_ANSWERS:
        text = f"{choices} answers to each of {len(prompts)} prompts are more than {_MAX_ANSWERS}."
        raise bad_request(text, param="prompt")
    requests = tuple(_request(body, served, prompt) for prompt in prompts)
    heading = Heading(
        id=f"cmpl-{uuid4().hex}",
        created=int(time.time()),
        answers=choices * len(requests),
        include_usage=openai_options.include_usage(body),
        scored=body.logprobs is not None,
        asked=Asked(request_id, served.model.id, body.model, ignored, choices),
    )
    return Decoded(requests, choices, bool(body.stream), CompletionEncoder(heading))


def _request(body: CompletionRequest, served: Served, prompt: Prompt) -> ChatRequest:
    max_tokens = _MAX_TOKENS if body.max_tokens is None else body.max_tokens
    echo = bool(body.echo)
    if max_tokens == 0 and not (echo and body.logprobs is not None):
        text = "max_tokens may be 0 only with echo and logprobs, which score the prompt."
        raise bad_request(text, param="max_tokens")
    return ChatRequest(
        prompt,
        options.sampling(body),
        options.limits(body, max_tokens, openai_options.stop(body)),
        options.depth(body, served.model),
        options.acceptance(body),
        body.copy_lane,
        logprobs=body.logprobs,
        prompt_logprobs=body.logprobs if echo else None,
        echo=echo,
        kv=options.kv(body),
    )


def _prompts(given: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]]) -> list[Prompt]:
    """Each prompt by itself. A list of numbers is one prompt, of tokens."""
    if isinstance(given, str):
        return [RawText(given)]
    if not given:
        raise bad_request("prompt is an empty list.", param="prompt")
    if isinstance(given[0], int):
        return [TokenIds(tuple(each for each in given if isinstance(each, int)))]
    return [
        RawText(each) if isinstance(each, str) else TokenIds(tuple(each))
        for each in given
        if not isinstance(each, int)
    ]
