"""What all of a response has in common: what it begins with, how it ends, and its items' names."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from mtplx_client.wire.responses_output import (
    InputTokensDetails,
    OutputItem,
    OutputTokensDetails,
    Response,
    ResponseError,
    ResponseUsage,
)
from mtplx_engine.events import Finished
from mtplx_server.errors import Problem
from mtplx_server.protocols.openai_responses.toolbox import Known
from mtplx_server.protocols.report import Asked, Counts, count, report


@dataclass(frozen=True, slots=True)
class Heading:
    """What every reply to one request has.

    Attributes:
        id: Id of the response.
        created: Unix time of the request.
        settings: What it repeats of the request.
        known: What the client calls the tools, by the engine's names.
        seals: Whether thoughts come in the form, too, that clients send back.
        scored: Whether log-probabilities were asked for.
        asked: What the report tells of the request.
    """

    id: str
    created: int
    settings: Mapping[str, Any]
    known: Mapping[str, Known]
    seals: bool
    scored: bool
    asked: Asked

    def begun(self) -> Response:
        """The response before there is any output."""
        return self._response("in_progress", ())

    def ended(self, output: Sequence[OutputItem], finished: Finished) -> Response:
        """The response when nothing failed."""
        usage = _usage(count((finished,), 1))
        told = report((finished,), self.asked)
        if finished.reason == "length":
            why = {"reason": "max_output_tokens"}
            return self._response(
                "incomplete", output, incomplete_details=why, usage=usage, mtplx=told
            )
        now = int(time.time())
        return self._response("completed", output, completed_at=now, usage=usage, mtplx=told)

    def failed(self, output: Sequence[OutputItem], problem: Problem) -> Response:
        """The response when something failed."""
        error = ResponseError(code=problem.code or problem.kind, message=problem.message)
        return self._response("failed", output, error=error)

    def _response(self, status: str, output: Sequence[OutputItem], **end: Any) -> Response:
        fields: dict[str, Any] = {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "completed_at": None,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.asked.model,
            "output": list(output),
            **self.settings,
            "usage": None,
        }
        return Response(**(fields | end))


def _usage(counts: Counts) -> ResponseUsage:
    return ResponseUsage(
        input_tokens=counts.prompt,
        input_tokens_details=InputTokensDetails(cached_tokens=counts.cached, cache_write_tokens=0),
        output_tokens=counts.completion,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=counts.reasoning),
        total_tokens=counts.prompt + counts.completion,
    )


def new_id(kind: str) -> str:
    """An id that begins with its kind."""
    return f"{kind}_{uuid4().hex[:24]}"
