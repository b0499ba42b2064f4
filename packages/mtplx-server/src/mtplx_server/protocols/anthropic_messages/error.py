"""Anthropic's error envelope."""

from mtplx_client.wire.anthropic import AnthropicErrorDetail, AnthropicErrorReply
from mtplx_server.errors import Problem

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
THREADS_UNSUPPORTED = "thread_unsupported_request"


def error_reply(problem: Problem, request_id: str) -> AnthropicErrorReply:
    """Render a failure; the field at fault has no place of its own, so the message names it."""
    other = "api_error" if problem.status >= 500 else "invalid_request_error"
    detail = AnthropicErrorDetail(type=_TYPES.get(problem.status, other), message=_message(problem))
    if problem.code == THREADS_UNSUPPORTED:
        # Clients that can do without go on when they read this.
        details = {"error_code": problem.code, "unsupported": ["thread"]}
        detail = detail.model_copy(update={"details": details})
    return AnthropicErrorReply(type="error", error=detail, request_id=request_id)


def _message(problem: Problem) -> str:
    if problem.overflow is not None:
        # Clients look for these very words, and then shorten the conversation.
        tokens, most = problem.overflow
        return f"prompt is too long: {tokens} tokens > {most} maximum"
    if problem.param is None or problem.param in problem.message:
        return problem.message
    return f"{problem.param}: {problem.message}"
