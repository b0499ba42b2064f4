"""Turns every exception, Sanic's own included, into a reply in a protocol's envelope."""

import logging
from collections.abc import Sequence

from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound, RequestCancelled, SanicException
from sanic.handlers import ErrorHandler

from mtplx_server.errors import Problem, problem_of
from mtplx_server.http.middleware.request_id import request_id
from mtplx_server.http.reply import json_reply
from mtplx_server.protocols.base import ApiProtocol

_log = logging.getLogger(__name__)

_CODES = {413: "request_too_large"}
_CLIENT_GONE = 499  # nobody reads this reply


class EnvelopeErrorHandler(ErrorHandler):
    """Replaces Sanic's error pages."""

    def __init__(self, protocols: Sequence[ApiProtocol]) -> None:
        """Know the envelopes; the first is for paths that belong to nobody."""
        super().__init__()
        self._protocols = protocols

    def response(self, request: Request, exception: Exception) -> HTTPResponse:
        """The reply for an exception from a handler, the router or the HTTP parser."""
        problem = _problem(request, exception)
        if problem.status == 500:
            _log.error("Request %s failed", request_id(request), exc_info=exception)
        headers = {}
        if problem.retry_after_s is not None:
            headers["retry-after"] = str(problem.retry_after_s)
        if problem.allow:
            headers["allow"] = ", ".join(problem.allow)
        reply = self._protocol(request).error(problem, request_id(request))
        return json_reply(reply, problem.status, headers)

    def _protocol(self, request: Request) -> ApiProtocol:
        """The one that the client speaks."""
        for each in self._protocols:
            if each.header is not None and each.header in request.headers:
                return each
        if request.route:
            known: ApiProtocol = request.route.ctx.protocol
            return known
        claimed = (each for each in self._protocols if request.path.startswith(each.prefixes))
        return next(claimed, self._protocols[0])


def _problem(request: Request, exception: BaseException) -> Problem:
    match exception:
        case NotFound():
            message = f"There is nothing at {request.path}."
            return Problem(404, "invalid_request_error", message, "not_found")
        case MethodNotAllowed() if request.headers.getone("upgrade", "").lower() == "websocket":
            # Clients that get this status go on with HTTP at once; others cost them retries.
            message = f"{request.path} is not served over WebSocket, only over HTTP."
            return Problem(426, "invalid_request_error", message, "websocket_not_supported")
        case MethodNotAllowed():
            allow = tuple(sorted(exception.headers["Allow"].split(", ")))
            message = f"{request.path} does not take {request.method}, only {', '.join(allow)}."
            return Problem(405, "invalid_request_error", message, "method_not_allowed", allow=allow)
        case RequestCancelled():
            return Problem(_CLIENT_GONE, "invalid_request_error", "The client is gone.")
        case SanicException() if exception.status_code < 500:
            status = exception.status_code
            return Problem(status, "invalid_request_error", str(exception), _CODES.get(status))
        case _:
            return problem_of(exception)
