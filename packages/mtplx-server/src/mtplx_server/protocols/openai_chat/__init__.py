"""`POST /v1/chat/completions`."""

from mtplx_client.wire.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from mtplx_client.wire.error import ErrorReply
from mtplx_server.protocols.base import ApiProtocol, Generate
from mtplx_server.protocols.openai_chat.decode import decode
from mtplx_server.protocols.openai_error import error_reply

PROTOCOL = ApiProtocol(
    name="openai_chat",
    endpoints=(
        Generate(
            "/v1/chat/completions",
            "Answer a conversation",
            ChatCompletionRequest,
            decode,
            reply=ChatCompletion,
            chunk=ChatCompletionChunk,
        ),
    ),
    error=error_reply,
    envelope=ErrorReply,
)
