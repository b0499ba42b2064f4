"""OpenAI's error envelope, for its endpoints and for paths that belong to nobody."""

from mtplx_client.wire.error import ErrorDetail, ErrorReply
from mtplx_server.errors import Problem


def error_reply(problem: Problem, _: str) -> ErrorReply:
    """Render a failure; all four keys are always there, the request id is in a header only."""
    return ErrorReply(
        error=ErrorDetail(
            message=problem.message, type=problem.kind, param=problem.param, code=problem.code
        )
    )
