"""What a response repeats of its request."""

from collections.abc import Mapping, Sequence
from typing import Any

from mtplx_client.wire.responses import ResponsesRequest, ResponsesTool, TextFormat
from mtplx_server.protocols.fields import extra
from mtplx_server.protocols.openai_responses.toolbox import READ

# Clients want numbers here, also where the model's own default is taken.
_NEUTRAL = 1.0


def settings(body: ResponsesRequest) -> Mapping[str, Any]:
    """The fields of the response, as they were asked for or as they are by default."""
    reasoning, text = body.reasoning, body.text
    return {
        "instructions": body.instructions,
        "tools": _tools(body.tools),
        "tool_choice": body.tool_choice or "auto",
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "text": {"format": _format(text.format if text else None), "verbosity": "medium"},
        "reasoning": {
            "effort": reasoning.effort if reasoning else None,
            "summary": reasoning.summary if reasoning else None,
        },
        "temperature": _NEUTRAL if body.temperature is None else body.temperature,
        "top_p": _NEUTRAL if body.top_p is None else body.top_p,
        "presence_penalty": body.presence_penalty or 0.0,
        "frequency_penalty": body.frequency_penalty or 0.0,
        "top_logprobs": body.top_logprobs or 0,
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": None,
        "metadata": body.metadata or {},
        "truncation": "disabled",
        "store": False,
        "background": False,
        "previous_response_id": None,
        "service_tier": "default",
        **{name: _text(extra(body).get(name)) for name in _NAMES},
    }


# Of a function, whether the request says so or not.
_EXPECTED = {"description": None, "parameters": None, "strict": False}
_NAMES = ("prompt_cache_key", "safety_identifier", "user")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _tools(given: Sequence[ResponsesTool] | None) -> list[dict[str, Any]]:
    """Those that were not left out."""
    return [_tool(each) for each in given or () if each.type in READ]


def _tool(given: ResponsesTool) -> dict[str, Any]:
    """A tool with all the keys that readers expect."""
    told = given.model_dump(exclude_none=True, exclude={"tools"})
    if given.type == "function":
        return told | {name: told.get(name, default) for name, default in _EXPECTED.items()}
    if given.type == "namespace":
        return told | {"description": given.description or "", "tools": _tools(given.tools)}
    return told


def _format(given: TextFormat | None) -> dict[str, Any]:
    if given is None:
        return {"type": "text"}
    if given.type != "json_schema":
        return {"type": given.type}
    return {
        "type": given.type,
        "name": given.name or "",
        "description": given.description,
        "schema": given.schema_,
        "strict": bool(given.strict),
    }
