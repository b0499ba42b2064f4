"""The fields of a chat request that are not honoured, and what becomes of them."""

from mtplx_client.wire.chat import ChatCompletionRequest
from mtplx_server.protocols.fields import Field, FieldTable
from mtplx_server.protocols.openai_options import OTHER_FIELDS

_USE_TOOLS = "Send tools and tool_choice."
_USE_FORMAT = "Send response_format."

TABLE = FieldTable(
    ChatCompletionRequest,
    (
        *OTHER_FIELDS,
        Field("verbosity", "ignored", "The served models have no levels.", ("medium",)),
        Field("functions", "refused", _USE_TOOLS, ([],)),
        Field("function_call", "refused", _USE_TOOLS, ("none", "auto")),
        Field("modalities", "refused", "Text only.", (["text"],)),
        Field("audio", "refused", "Text only."),
        Field("prediction", "refused", "Drafts come from the model and from earlier text."),
        Field("web_search_options", "refused", "The server never searches."),
        Field("moderation", "refused", "Nothing is moderated."),
        Field("grammar", "refused", _USE_FORMAT),
        Field("json_schema", "refused", _USE_FORMAT),
        Field("guided_choice", "refused", _USE_FORMAT),
        Field("guided_grammar", "refused", _USE_FORMAT),
        Field("guided_json", "refused", _USE_FORMAT),
        Field("guided_regex", "refused", _USE_FORMAT),
        Field("structured_outputs", "refused", _USE_FORMAT),
    ),
)
