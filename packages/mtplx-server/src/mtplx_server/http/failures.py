"""Turns every exception, Sanic's own included, into a reply in a protocol's envelope."""

import logging

from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound, RequestCancelled, SanicException
from sanic.handlers import ErrorHandler

from mtplx_server.errors import Problem, problem_of
from mtplx_server.http.middleware.request_id import request_id
from mtplx_server.http.reply import json_reply
from mtplx_server.protocols.openai_error import error_reply

_log = logging.getLogger(__name__)

_CODES = {413: "request_too_large"}
_CLIENT_GONE = 499  # nobody reads this reply


class EnvelopeErrorHandler(ErrorHandler):
    """Replaces Sanic's error pages."""

    def response(self, request: Request, exception: Exception) -> HTTPResponse:
        """The reply for an exception from a handler, the router or the HTTP parser."""
        problem = _problem(request, exception)
        if problem.status == 500:
            _log.error("Request %s failed", request_id(request), exc_info=exception)
        render = request.route.ctx.render_error if request.route else error_reply
        headers = {}
        if problem.retry_after_s is not None:
            headers["retry-after"] = str(problem.retry_after_s)
        if problem.allow:
            headers["allow"] = ", ".join(problem.allow)
        return json_reply(render(problem), problem.status, headers)


def _problem(request: Request, exception: BaseException) -> Problem:
    match exception:
        case NotFound():
            message = f"There is nothing at {request.path}."
            return Problem(404, "invalid_request_error", message, "not_found")
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
