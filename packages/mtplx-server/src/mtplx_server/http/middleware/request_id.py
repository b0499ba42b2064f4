"""Gives each request a name, and says it in every reply under the two names that SDKs read."""

import re
from typing import Any
from uuid import uuid4

from sanic import Request, Sanic
from sanic.response import BaseHTTPResponse

_WELL_FORMED = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id(request: Request) -> str:
    """The client's own `X-Request-Id` if it is well-formed, else one of ours; always the same."""
    known = getattr(request.ctx, "request_id", None)
    if known is None:
        given = request.headers.getone("x-request-id", "")
        known = given if _WELL_FORMED.fullmatch(given) else f"req_{uuid4().hex}"
        request.ctx.request_id = known
    return str(known)


async def _name_reply(request: Request, response: BaseHTTPResponse) -> None:
    name = request_id(request)
    response.headers["x-request-id"] = name
    response.headers["request-id"] = name


def install(app: Sanic[Any, Any]) -> None:
    """Add the two headers to all replies of an app."""
    app.register_middleware(_name_reply, "response")
