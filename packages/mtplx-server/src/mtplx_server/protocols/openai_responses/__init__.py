"""`POST /v1/responses` and `POST /v1/responses/input_tokens`."""

from mtplx_client.wire.error import ErrorReply
from mtplx_client.wire.responses import InputTokensRequest, ResponsesRequest
from mtplx_client.wire.responses_output import (
    CallEvent,
    FailureEvent,
    InputTokens,
    ItemEvent,
    PartEvent,
    Response,
    ResponseEvent,
    TextEvent,
)
from mtplx_server.protocols.base import ApiProtocol, Count, Generate
from mtplx_server.protocols.openai_responses.decode import counted, decode
from mtplx_server.protocols.openai_responses.failure import error

PROTOCOL = ApiProtocol(
    name="openai_responses",
    endpoints=(
        Generate(
            "/v1/responses",
            "Answer a conversation of items",
            ResponsesRequest,
            decode,
            reply=Response,
            chunks=(ResponseEvent, ItemEvent, PartEvent, TextEvent, CallEvent, FailureEvent),
        ),
        Count(
            "/v1/responses/input_tokens",
            "Count the tokens of a conversation of items",
            InputTokensRequest,
            counted,
            lambda tokens: InputTokens(object="response.input_tokens", input_tokens=tokens),
            InputTokens,
        ),
    ),
    error=error,
    envelope=ErrorReply,
)
