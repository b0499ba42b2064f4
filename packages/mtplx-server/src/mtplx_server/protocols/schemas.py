"""The schema of an answer, wherever a protocol has it."""

from collections.abc import Mapping
from typing import Any

from mtplx_engine.constraint import JsonSchema
from mtplx_server.errors import bad_request


def json_schema(given: Mapping[str, Any] | bool | None, path: str) -> JsonSchema:
    """The form of an answer that a schema describes; `path` is where it stands.

    Raises:
        RequestRefused: It is missing, or no object.
    """
    if given is None:
        raise bad_request(f"{path} is missing.", param=path)
    if isinstance(given, bool):
        raise bad_request(f"{path} must be an object.", param=path)
    return JsonSchema(given, path)
