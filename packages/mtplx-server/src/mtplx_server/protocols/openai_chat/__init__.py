"""`POST /v1/chat/completions`."""

from mtplx_client.wire.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionRequest
from mtplx_client.wire.error import ErrorReply
from mtplx_server.protocols.base import ApiProtocol, Generate
from mtplx_server.protocols.openai_chat.decode import decode
from mtplx_server.protocols.openai_error import error_reply
from mtplx_server.protocols.openai_stream import END_MARK

PROTOCOL = ApiProtocol(
    name="openai_chat",
    endpoints=(
        Generate(
            "/v1/chat/completions",
            "Answer a conversation",
            ChatCompletionRequest,
            decode,
            reply=ChatCompletion,
            chunks=(ChatCompletionChunk,),
            end_mark=END_MARK,
        ),
    ),
    error=error_reply,
    envelope=ErrorReply,
)
