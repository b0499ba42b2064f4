"""The fields of a request that are not honoured, and what becomes of them."""

from mtplx_client.wire.responses import InputTokensRequest, ResponsesRequest
from mtplx_server.protocols.fields import Field, FieldTable

_KEPT_NOWHERE = "Nothing is stored: send the whole conversation as input."

# Of both endpoints.
_STORED = (
    Field("previous_response_id", "refused", _KEPT_NOWHERE),
    Field("conversation", "refused", _KEPT_NOWHERE),
    Field("truncation", "ignored", "A prompt that is too long is an error.", ("disabled",)),
)

TABLE = FieldTable(
    ResponsesRequest,
    (
        *_STORED,
        Field("store", "refused", _KEPT_NOWHERE, (False,)),
        Field("background", "refused", "Keep the connection open, or stream.", (False,)),
        Field("prompt", "refused", "There are no stored prompts: send instructions and input."),
        Field("moderation", "refused", "Nothing is moderated."),
        Field("max_tool_calls", "ignored", "The server runs no tools."),
        Field("context_management", "ignored", "The conversation is read as it is.", ([],)),
        Field("access_programs", "ignored", "There are none."),
        Field("background_options", "ignored", "Nothing runs in the background."),
        Field("image", "ignored", "Text only."),
        Field("client_metadata", "harmless", "Labels for somebody else's records."),
        Field("prompt_cache_key", "harmless", "Names the conversation for the session cache."),
        Field("prompt_cache_options", "harmless", "What was computed is kept anyway."),
        Field(
            "prompt_cache_retention",
            "harmless",
            "What was computed is kept while there is room.",
        ),
        Field("safety_identifier", "harmless", "Names an end user."),
        Field("service_tier", "harmless", "There is one tier."),
        Field("stream_options", "harmless", "Nothing is obfuscated."),
        Field("user", "harmless", "Names the conversation where nothing else does."),
    ),
)

# What is counted may be the very body that is going to be sent.
COUNT_TABLE = FieldTable(
    InputTokensRequest,
    (
        *(
            Field(name, "harmless", "Has no part in the prompt.")
            for name in sorted(TABLE.fields.keys() - InputTokensRequest.model_fields.keys())
        ),
        *_STORED,
        Field("personality", "ignored", "The served models have none."),
    ),
)
