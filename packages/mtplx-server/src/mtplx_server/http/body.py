"""From the bytes of a request body to its wire model, with one shape of 400 for all that is wrong.

The JSON parser here is pydantic's: unlike the standard library's it has a depth limit, and it
refuses NaN, lone surrogates and numbers of absurd length.
"""

import asyncio
from typing import Any, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json
from sanic import Request
from sanic.http import Http

from mtplx_client.wire.base import WireRequest
from mtplx_server.errors import Problem, RequestRefused, bad_request

Body = TypeVar("Body", bound=WireRequest)

# A client that is still sending may miss an early refusal, so this much beyond the limit is read
# and thrown away first.
_READ_ON_BYTES = 64 * 1024 * 1024
_SILENCE_S = 60.0


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """Receive the whole body.

    Raises:
        RequestRefused: 413, it is larger than the limit.
    """
    parts: list[bytes] = []
    size = 0
    stream = cast(Http, request.stream)
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit_bytes + _READ_ON_BYTES:
        stream.keep_alive = False
        raise _too_large(limit_bytes)
    while (part := await _next_part(stream)) is not None:
        size += len(part)
        if size <= limit_bytes:
            parts.append(part)
        elif size > limit_bytes + _READ_ON_BYTES:
            stream.keep_alive = False  # the rest of the body is still in the way
            break
    if size > limit_bytes:
        raise _too_large(limit_bytes)
    return b"".join(parts)


async def _next_part(stream: Http) -> bytes | None:
    """The next piece of the body, None at its end; a client must not fall silent half-way."""
    try:
        async with asyncio.timeout(_SILENCE_S):
            return await stream.read()
    except TimeoutError:
        stream.keep_alive = False
        message = f"The request body did not arrive: nothing came for {_SILENCE_S:g} s."
        raise RequestRefused(Problem(408, "invalid_request_error", message)) from None


def _too_large(limit_bytes: int) -> RequestRefused:
    message = f"The request body is larger than {limit_bytes} bytes."
    return RequestRefused(Problem(413, "invalid_request_error", message, "request_too_large"))


def parse_body(content: bytes, wire: type[Body]) -> Body:
    """Read a body.

    Raises:
        RequestRefused: It is not JSON, not an object, or a field has the wrong type.
    """
    try:
        values = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise bad_request(f"The request body is not valid JSON: {error}.") from None
    if not isinstance(values, dict):
        raise bad_request("The request body must be a JSON object.")
    try:
        return wire.model_validate(values)
    except ValidationError as error:
        raise _wrong_type(error, values) from None


def _wrong_type(error: ValidationError, values: dict[str, Any]) -> Exception:
    """One field of those that are wrong: the most deeply nested, as that is the one meant.

    A field that may be a string or a list gives one error for each; they are told together. Of a
    list that may hold one thing or another, the reading that came furthest is the one meant.
    """
    details = error.errors(include_url=False, include_input=False, include_context=False)
    # What is too long was of the right type as far as it was read.
    details = [each for each in details if each["type"] == "too_long"] or details
    wrong = [(_path(each, values), each) for each in details]
    path, _ = max(wrong, key=lambda each: (_depth(each[0]), _indices(each[1])))
    reasons = dict.fromkeys(_reason(detail) for where, detail in wrong if where == path)
    return bad_request(f"{path}: {' or '.join(reasons)}.", param=path)


def _depth(path: str) -> int:
    return path.count(".") + path.count("[")


def _indices(detail: ErrorDetails) -> list[int]:
    return [step for step in detail["loc"] if isinstance(step, int)]


def _reason(detail: ErrorDetails) -> str:
    match detail["type"]:
        case "missing":
            return "this field is required"
        case "model_type":
            return "input should be an object"  # pydantic names a class of ours
        case _:
            return detail["msg"].lower()


def _path(detail: ErrorDetails, values: Any) -> str:
    """Where in the body an error is. Pydantic's location also names union members: skip those."""
    path = ""
    for step in detail["loc"]:
        if isinstance(step, int):
            path += f"[{step}]"
            values = values[step] if isinstance(values, list) and step < len(values) else None
        elif isinstance(values, dict) and (step in values or detail["type"] == "missing"):
            path += f".{step}" if path else step
            values = values.get(step)
    return path
