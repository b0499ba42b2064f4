"""Ollama's error envelope."""

from mtplx_client.wire.ollama import OllamaError
from mtplx_server.errors import Problem


def error_reply(problem: Problem, _: str) -> OllamaError:
    """Render a failure; the request id is in a header only."""
    return OllamaError(error=problem.message)
