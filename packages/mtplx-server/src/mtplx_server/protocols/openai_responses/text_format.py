"""What a request wants its answer to look like, as a grammar of the engine."""

from mtplx_client.wire.responses import TextFormat, TextOptions
from mtplx_engine.constraint import Grammar, JsonObject, JsonSchema
from mtplx_server.errors import bad_request

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
        return _schema(given)
    message = f"{_PATH}.type must be one of {', '.join(_TYPES)}; got {given.type[:100]!r}."
    raise bad_request(message, param=f"{_PATH}.type", code="unsupported_value")


def _schema(given: TextFormat) -> Grammar:
    path = f"{_PATH}.schema"
    if given.schema_ is None:
        raise bad_request(f"{path} is missing.", param=path)
    if isinstance(given.schema_, bool):
        raise bad_request(f"{path} must be an object.", param=path)
    return JsonSchema(given.schema_, path)
