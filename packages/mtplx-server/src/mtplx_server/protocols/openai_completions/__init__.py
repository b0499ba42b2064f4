"""`POST /v1/completions`."""

from mtplx_client.wire.completions import Completion, CompletionRequest
from mtplx_client.wire.error import ErrorReply
from mtplx_server.protocols.base import ApiProtocol, Generate
from mtplx_server.protocols.openai_completions.decode import decode
from mtplx_server.protocols.openai_error import error_reply
from mtplx_server.protocols.openai_stream import END_MARK

PROTOCOL = ApiProtocol(
    name="openai_completions",
    endpoints=(
        Generate(
            "/v1/completions",
            "Continue texts, or score them",
            CompletionRequest,
            decode,
            reply=Completion,
            chunks=(Completion,),
            end_mark=END_MARK,
        ),
    ),
    error=error_reply,
    envelope=ErrorReply,
)
