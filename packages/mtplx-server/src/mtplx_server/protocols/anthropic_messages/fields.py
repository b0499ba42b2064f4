"""The fields of a Messages request that are not honoured, and what becomes of them."""

from collections.abc import Collection, Iterable

from mtplx_client.wire.anthropic import CountTokensRequest
from mtplx_client.wire.base import WireRequest
from mtplx_server.protocols.fields import Field, FieldTable, meaningful, unread

_CACHE = "What was computed is kept anyway."
_WHOLE = "Send the whole conversation."

TABLE = FieldTable(
    CountTokensRequest,
    (
        Field(
            "metadata",
            "harmless",
            "Labels; a `session_id` in it names the conversation.",
        ),
        Field("service_tier", "harmless", "There is one tier."),
        Field("speed", "harmless", "There is one speed: the most."),
        Field("inference_geo", "harmless", "It runs here."),
        Field("betas", "harmless", "What is known is always on."),
        Field("cache_control", "harmless", _CACHE),
        Field("billing_policy", "harmless", "Nothing is billed."),
        Field("diagnostics", "harmless", "Asks for hints on caching."),
        Field("fallbacks", "harmless", "There is one model."),
        Field("fallback_credit_token", "harmless", "There is one model."),
        Field("context_management", "ignored", "Nothing is cut out of a conversation."),
        Field("compaction", "ignored", "Nothing is cut out of a conversation."),
        Field("container", "ignored", "Nothing is run."),
        Field("mcp_servers", "refused", "The server calls nobody.", ([],)),
        Field("thread", "refused", _WHOLE),
    ),
)

# Inside of messages and tools.
_HARMLESS = {"cache_control", "eager_input_streaming", "allowed_callers", "caller", "signature"}


def without_effect(model: WireRequest, read: Collection[str] | None = None) -> Iterable[str]:
    """Fields of a part of the body that have no effect but should have one.

    Args:
        model: The part.
        read: The fields that its kind has a use for; None: all that it declares.
    """
    names = meaningful(model) if read is None else unread(model, ("type", *read))
    return (name for name in names if name not in _HARMLESS)
