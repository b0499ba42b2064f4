"""What a chat request wants its answer to look like, as a grammar of the engine."""

from mtplx_client.wire.chat import ResponseFormat
from mtplx_engine.constraint import Grammar, JsonObject, Lark, Regex
from mtplx_server.errors import bad_request
from mtplx_server.protocols.schemas import json_schema

_TYPES = ("text", "json_object", "json_schema", "grammar")


def grammar(given: ResponseFormat | None) -> Grammar | None:
    """The form of an answer; None: any.

    Raises:
        RequestRefused: The type is not known, or what it needs is missing.
    """
    match given.type if given else "text":
        case "text":
            return None
        case "json_object":
            return JsonObject()
        case "json_schema":
            assert given is not None
            return _schema(given)
        case "grammar":
            assert given is not None
            return _grammar(given)
        case other:
            text = f"response_format.type must be one of {', '.join(_TYPES)}; got {other!r}."
            raise bad_request(text, param="response_format.type", code="unsupported_value")


def _schema(given: ResponseFormat) -> Grammar:
    if given.json_schema is None and given.schema_ is not None:
        return json_schema(given.schema_, "response_format.schema")
    schema = None if given.json_schema is None else given.json_schema.schema_
    return json_schema(schema, "response_format.json_schema.schema")


def _grammar(given: ResponseFormat) -> Grammar:
    path = "response_format.definition"
    if given.definition is None:
        raise bad_request(f"{path} is missing.", param=path)
    match given.syntax:
        case "lark":
            return Lark(given.definition, path)
        case "regex":
            return Regex(given.definition, path)
        case other:
            text = f"response_format.syntax must be 'lark' or 'regex'; got {other!r}."
            raise bad_request(text, param="response_format.syntax", code="unsupported_value")
