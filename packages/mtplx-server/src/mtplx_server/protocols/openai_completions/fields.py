"""The fields of a completion request that are not honoured, and what becomes of them."""

from mtplx_client.wire.completions import CompletionRequest
from mtplx_server.protocols.fields import Field, FieldTable
from mtplx_server.protocols.openai_options import OTHER_FIELDS

TABLE = FieldTable(
    CompletionRequest,
    (
        *OTHER_FIELDS,
        Field("suffix", "refused", "Text cannot be filled in between.", ("",)),
        Field("best_of", "refused", "Send n and choose.", (1,)),
        Field("response_format", "refused", "Use Chat Completions.", ({"type": "text"},)),
    ),
)
