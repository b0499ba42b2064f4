"""The tools of a chat request and which of them may be called, in the engine's vocabulary."""

from typing import Any

from mtplx_client.wire.chat import ChatCompletionRequest, ChatTool
from mtplx_engine.tools import Calling, Tool
from mtplx_server.errors import bad_request
from mtplx_server.protocols.fields import meaningful
from mtplx_server.protocols.tools import allowed_mode, check_name

_PARAM = "tool_choice"


def tools(body: ChatCompletionRequest) -> tuple[Tool, ...]:
    """The functions that the model is told of.

    Raises:
        RequestRefused: A tool is not a function, or has no proper name.
    """
    return tuple(_tool(each, f"tools[{at}]") for at, each in enumerate(body.tools or ()))


def _tool(given: ChatTool, path: str) -> Tool:
    if given.type != "function":
        text = f"{path}.type: tools of type {given.type!r} are not supported; only functions are."
        raise bad_request(text, param=f"{path}.type", code="unsupported_value")
    if given.function is None:
        raise bad_request(f"{path}.function is missing.", param=f"{path}.function")
    function = given.function
    check_name(function.name, f"{path}.function.name")
    return Tool(
        function.name, function.description, function.parameters, strict=bool(function.strict)
    )


def ignored(body: ChatCompletionRequest) -> list[str]:
    """Paths of all fields of tools that have no effect."""
    found: list[str] = []
    for each in body.tools or ():
        found += [f"tools[].{name}" for name in meaningful(each)]
        if each.function is not None:
            found += [f"tools[].function.{name}" for name in meaningful(each.function)]
    return found


def calling(body: ChatCompletionRequest) -> Calling:
    """Which tools may be called, and whether one must be.

    Raises:
        RequestRefused: `tool_choice` has a form that is not known.
    """
    parallel = body.parallel_tool_calls is not False
    match body.tool_choice:
        case None | "auto":
            return Calling(parallel=parallel)
        case "none":
            return Calling("none", parallel=parallel)
        case "required" | "any":
            return Calling("required", parallel=parallel)
        case {"type": "function", "function": {"name": str(name)}}:
            # One named function means one call of it.
            return Calling("required", (name,), parallel=False)
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(allowed)}}:
            which = allowed_mode(mode, f"{_PARAM}.allowed_tools.mode")
            return Calling(which, tuple(map(_named, allowed)), parallel=parallel)
        case other:
            text = (
                "tool_choice must be 'auto', 'none', 'required', a function or allowed_tools;"
                f" got {str(other)[:200]}."
            )
            raise bad_request(text, param=_PARAM)


def _named(tool: Any) -> str:
    match tool:
        case {"type": "function", "function": {"name": str(name)}}:
            return name
        case {"type": "function", "name": str(name)}:
            return name
    text = "tool_choice.allowed_tools.tools must hold functions, each with its name."
    raise bad_request(text, param=f"{_PARAM}.allowed_tools.tools")
