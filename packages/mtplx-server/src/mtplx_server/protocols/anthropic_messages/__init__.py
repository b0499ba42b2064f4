"""`POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from mtplx_client.wire.anthropic import (
    AnthropicErrorReply,
    BlockChange,
    BlockStart,
    BlockStop,
    CountTokensRequest,
    MessageChange,
    MessageReply,
    MessagesRequest,
    MessageStart,
    MessageStop,
    Ping,
    TokenCount,
)
from mtplx_server.protocols.anthropic_messages.decode import decode, prompt
from mtplx_server.protocols.anthropic_messages.error import error_reply
from mtplx_server.protocols.base import ApiProtocol, Count, Generate

PROTOCOL = ApiProtocol(
    name="anthropic_messages",
    endpoints=(
        Generate(
            "/v1/messages",
            "Answer a conversation",
            MessagesRequest,
            decode,
            reply=MessageReply,
            chunks=(
                MessageStart,
                Ping,
                BlockStart,
                BlockChange,
                BlockStop,
                MessageChange,
                MessageStop,
            ),
        ),
        Count(
            "/v1/messages/count_tokens",
            "Count the tokens of a conversation",
            CountTokensRequest,
            prompt,
            lambda tokens: TokenCount(input_tokens=tokens),
            TokenCount,
        ),
    ),
    error=error_reply,
    envelope=AnthropicErrorReply,
    prefixes=("/v1/messages",),
    header="anthropic-version",
)
