"""What a request wants its answer to look like, as a grammar of the engine."""

from mtplx_client.wire.responses import TextOptions
from mtplx_engine.constraint import Grammar, JsonObject
from mtplx_server.errors import bad_request
from mtplx_server.protocols.schemas import json_schema

_PATH = "text.format"
_TYPES = ("text", "json_object", "json_schema")


def grammar(text: TextOptions | None) -> Grammar | None:
    """The form of an answer; None: any.

    Raises:
        RequestRefused: The type is not known, or the schema is missing.
    """
    given = text.format if text else None
    if given is None or given.type == "text":
        return None
    if given.type == "json_object":
        return JsonObject()
    if given.type == "json_schema":
        return json_schema(given.schema_, f"{_PATH}.schema")
    message = f"{_PATH}.type must be one of {', '.join(_TYPES)}; got {given.type[:100]!r}."
    raise bad_request(message, param=f"{_PATH}.type", code="unsupported_value")
