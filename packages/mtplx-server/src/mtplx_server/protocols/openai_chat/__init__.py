"""`POST /v1/chat/completions`."""

from mtplx_client.wire.chat import ChatCompletionRequest
from mtplx_server.protocols.base import ApiProtocol, Generate
from mtplx_server.protocols.openai_chat.decode import decode
from mtplx_server.protocols.openai_error import error_reply

PROTOCOL = ApiProtocol(
    name="openai_chat",
    endpoints=(Generate("/v1/chat/completions", ChatCompletionRequest, decode),),
    error=error_reply,
)
