"""`GET /openapi.json`: the protocols as an OpenAPI 3.1 document, made from the wire models."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core.core_schema import ModelSchema

from mtplx_client.wire.base import WireReply
from mtplx_client.wire.error import ErrorReply
from mtplx_server._version import __version__
from mtplx_server.protocols.base import (
    Action,
    ApiProtocol,
    Command,
    Count,
    Endpoint,
    Generate,
    Lookup,
)
from mtplx_server.protocols.openai_error import error_reply
from mtplx_server.protocols.wire_docs import described, purpose

Json = dict[str, Any]
Schemas = Mapping[type, Json]  # references to them

_PARAMETER = re.compile(r"<(\w+):path>")
_FAILURES = {
    "400": "The body or a field is wrong; `param` names the field.",
    "404": "Another model was named, and the server is strict about it.",
    "408": "The body did not arrive.",
    "413": "The body is too large.",
    "500": "The model or the server failed.",
    "503": "Too busy, or stopped; try again after `Retry-After` seconds.",
    "507": "The request needs more memory than there is.",
}
_UNKNOWN = {"404": "There is nothing of that name."}
_FORBIDDEN = {"403": "A page of another site asked."}
_OTHERS = {"default": "Any other failure."}


class Document(WireReply):
    """An OpenAPI document.

    Attributes:
        openapi: The version of OpenAPI that it is written in.
        info: Name and version of the server.
        paths: What is offered where.
        components: Schemas of bodies, by name.
    """

    openapi: str
    info: Json
    paths: Json
    components: Json


def protocol(others: Sequence[ApiProtocol]) -> ApiProtocol:
    """The protocol that offers the document of some others."""
    written = document(others)
    lookup = Lookup("/openapi.json", "Describe the API", lambda *_: (200, written), (Document,))
    return ApiProtocol("openapi", (lookup,), error_reply, ErrorReply)


def document(protocols: Sequence[ApiProtocol]) -> Document:
    """Describe some protocols."""
    references, definitions = models_json_schema(
        [(model, "validation") for model in _models(protocols)],
        schema_generator=_Words,
        ref_template="#/components/schemas/{model}",
    )
    schemas = {model: reference for (model, _), reference in references.items()}
    return Document(
        openapi="3.1.0",
        info={"title": "mtplx", "version": __version__},
        paths={
            _PARAMETER.sub(r"{\1}", endpoint.path): _operation(endpoint, each, schemas)
            for each in protocols
            for endpoint in each.endpoints
        },
        components={"schemas": definitions["$defs"]},
    )


def _models(protocols: Sequence[ApiProtocol]) -> set[type[Any]]:
    models: set[type[Any]] = set()
    for each in protocols:
        models.add(each.envelope)
        for endpoint in each.endpoints:
            match endpoint:
                case Generate(wire=wire, reply=reply, chunks=chunks):
                    models |= {wire, reply, *chunks}
                case Count(wire=wire, reply=reply) | Action(wire=wire, reply=reply):
                    models |= {wire, reply}
                case Lookup(replies=replies):
                    models |= {*replies}
                case Command(reply=reply):
                    models.add(reply)
    return models


class _Words(GenerateJsonSchema):
    """Pydantic's schemas with the words of the docstrings.

    Replies, too, are described as they are read: a field with a default may be left out.
    """

    def model_schema(self, schema: ModelSchema) -> Json:
        """The schema of one model."""
        made = super().model_schema(schema)
        made["description"] = purpose(schema["cls"])
        for name, text in described(schema["cls"]).items():
            if text:
                made["properties"][name]["description"] = text
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: a title is only the name again."""
        return False


def _operation(endpoint: Endpoint, protocol: ApiProtocol, schemas: Schemas) -> Json:
    if isinstance(endpoint, Lookup):
        method, failures = "get", {}
        rest: Json = {}
        replies = _found(endpoint, schemas)
        if parameter := _PARAMETER.search(endpoint.path):
            failures = _UNKNOWN
            rest = {"parameters": [_parameter(parameter[1])]}
    elif isinstance(endpoint, Command):
        method, failures = "post", _FORBIDDEN
        done = {"description": "What was done.", "content": _json(schemas[endpoint.reply])}
        rest, replies = {}, {"200": done}
        if parameter := _PARAMETER.search(endpoint.path):
            rest = {"parameters": [_parameter(parameter[1])]}
    else:
        method, failures = "post", _FAILURES
        rest = {"requestBody": {"required": True, "content": _json(schemas[endpoint.wire])}}
        replies = {"200": _answers(endpoint, protocol, schemas)}
    for status, words in {**failures, **_OTHERS}.items():
        replies[status] = {"description": words, "content": _json(schemas[protocol.envelope])}
    return {
        method: {
            "operationId": _name(method, endpoint.path),
            "summary": endpoint.summary,
            "tags": [protocol.name],
            **rest,
            "responses": replies,
        }
    }


def _name(method: str, path: str) -> str:
    words = re.findall(r"\w+", _PARAMETER.sub(r"\1", path))
    return "_".join([method, *(words or ["root"])])


def _parameter(name: str) -> Json:
    """The rest of a path; that it may hold slashes OpenAPI cannot say."""
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _found(endpoint: Lookup, schemas: Schemas) -> Json:
    content = _json(_any(schemas[each] for each in endpoint.replies))
    return {
        str(status): {"description": "What there is to tell.", "content": content}
        for status in endpoint.statuses
    }


def _answers(endpoint: Generate | Count | Action, protocol: ApiProtocol, schemas: Schemas) -> Json:
    whole = _json(schemas[endpoint.reply])
    if not isinstance(endpoint, Generate):
        return {"description": "The answer.", "content": whole}
    message = _any(schemas[each] for each in (*endpoint.chunks, protocol.envelope))
    pieces = (
        {"text/event-stream": {"schema": _event(message, endpoint.end_mark)}}
        if endpoint.framing == "sse"
        else {"application/x-ndjson": {"schema": message}}
    )
    return {
        "description": "The answers; with `stream` in pieces, each an event or a line.",
        "content": {**whole, **pieces},
    }


def _any(schemas: Iterable[Json]) -> Json:
    """Any of some schemas."""
    first, *others = dict.fromkeys(each["$ref"] for each in schemas)
    if not others:
        return {"$ref": first}
    return {"anyOf": [{"$ref": reference} for reference in (first, *others)]}


def _event(message: Json, end_mark: str | None) -> Json:
    """One of many: OpenAPI has a word for that, `itemSchema`, only from 3.2 on."""
    json_text = {"contentMediaType": "application/json", "contentSchema": message}
    if end_mark is None:
        data: Json = {"type": "string", **json_text}
        words = "One event; what failed, if any, comes last."
    else:
        data = {"type": "string", "anyOf": [{"const": end_mark}, json_text]}
        words = f"One event. The last says `{end_mark}`; before it comes what failed, if any."
    properties = {"event": {"type": "string"}, "data": data}
    return {
        "description": words,
        "type": "object",
        "properties": properties,
        "required": ["data"],
    }
