"""What request bodies of all protocols have in common: from options to the engine's vocabulary."""

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

from mtplx_client.wire.options import DecodingOptions
from mtplx_engine.caching import KVQuant
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.info import ModelInfo
from mtplx_engine.request import Acceptance, Limits, Sampling
from mtplx_server.errors import bad_request, unknown_model
from mtplx_server.protocols.base import Served

MAX_TOP_LOGPROBS = 20


def check_model(name: str | None, served: Served) -> None:
    """See that the named model is the served one, if the server is strict about it.

    Raises:
        RequestRefused: It is not.
    """
    if served.strict_model and name is not None and name != served.model.id:
        raise unknown_model(name, served.model.id)


def sampling(options: DecodingOptions) -> Sampling:
    """How tokens are drawn.

    Raises:
        RequestRefused: `logit_bias` has a key that is no token id.
        InvalidRequest: A value is out of range.
    """
    return Sampling(
        logit_bias=_bias(options.logit_bias or {}),
        repetition_penalty=options.repetition_penalty,
        presence_penalty=options.presence_penalty,
        frequency_penalty=options.frequency_penalty,
        penalty_window=options.penalty_window,
        top_n_sigma=options.top_n_sigma,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        min_p=options.min_p,
        xtc_probability=options.xtc_probability,
        xtc_threshold=options.xtc_threshold,
        seed=options.seed,
    )


def _bias(by_text: Mapping[str, float]) -> dict[int, float]:
    biases: dict[int, float] = {}
    for text, bias in by_text.items():
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            message = f"logit_bias: {text[:40]!r} is not the id of a token."
            raise bad_request(message, param="logit_bias")
        biases[int(text)] = bias
    return biases


def limits(options: DecodingOptions, max_tokens: int | None, stop: Sequence[str]) -> Limits:
    """When an answer ends.

    Raises:
        InvalidRequest: A value is out of range.
    """
    return Limits(
        max_tokens=max_tokens,
        min_tokens=options.min_tokens or 0,
        stop=tuple(stop),
        stop_token_ids=tuple(options.stop_token_ids or ()),
        ignore_eos=bool(options.ignore_eos),
    )


def depth(options: DecodingOptions, model: ModelInfo) -> int | None:
    """How many tokens to draft per round; None leaves it to the engine.

    Raises:
        InvalidRequest: `generation_mode` is unknown, impossible here, or contradicts `depth`.
    """
    match options.generation_mode:
        case None:
            return options.depth
        case "ar":
            if options.depth:
                raise InvalidRequest("generation_mode 'ar' contradicts a depth above 0.", "depth")
            return 0
        case "mtp":
            if options.depth == 0:
                raise InvalidRequest("generation_mode 'mtp' contradicts a depth of 0.", "depth")
            if not model.max_depth:
                text = f"generation_mode 'mtp' is not possible: MTP is {model.mtp_reason}."
                raise InvalidRequest(text, "generation_mode")
            return options.depth or model.default_depth or 1
        case other:
            text = f"generation_mode must be 'mtp' or 'ar'; got {other!r}."
            raise InvalidRequest(text, "generation_mode")


def acceptance(options: DecodingOptions) -> Acceptance:
    """The rule that judges drafts.

    Raises:
        InvalidRequest: It is unknown.
    """
    known = get_args(Acceptance)
    name = options.acceptance
    if name is not None and name not in known:
        text = f"acceptance must be one of {', '.join(known)}; got {name!r}."
        raise InvalidRequest(text, "acceptance")
    return cast(Literal["auto", "coupled", "rejection"], name or "auto")


def kv(options: DecodingOptions) -> KVQuant | None:
    """How keys and values are quantised; None leaves it to the engine.

    Raises:
        InvalidRequest: A value is out of range.
    """
    asked = options.kv_bits, options.kv_group_size, options.quantized_kv_start
    return None if asked == (None, None, None) else KVQuant(*asked)


def scores(logprobs: bool | None, top_logprobs: int | None) -> int | None:
    """How many of the likeliest tokens to tell beside each; None: no scores.

    Raises:
        RequestRefused: `top_logprobs` is out of range, or has nothing to belong to.
    """
    top = top_logprobs or 0
    if top and not logprobs:
        raise bad_request("top_logprobs needs logprobs to be true.", param="top_logprobs")
    if not 0 <= top <= MAX_TOP_LOGPROBS:
        message = f"top_logprobs must be in [0, {MAX_TOP_LOGPROBS}]; got {top}."
        raise bad_request(message, param="top_logprobs")
    return top if logprobs else None
