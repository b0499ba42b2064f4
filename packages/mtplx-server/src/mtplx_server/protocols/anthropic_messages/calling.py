"""The tools of a Messages request and which of them may be called, in the engine's vocabulary."""

from mtplx_client.wire.anthropic import ClientTool, CountTokensRequest
from mtplx_engine.tools import Calling, Tool
from mtplx_server.errors import bad_request
from mtplx_server.protocols.anthropic_messages.fields import without_effect
from mtplx_server.protocols.tools import check_name


def tools(body: CountTokensRequest) -> tuple[Tool, ...]:
    """The tools that the model is told of: those that the client can run.

    Raises:
        RequestRefused: One has no proper name, or no schema.
    """
    return tuple(
        _tool(each, f"tools[{at}]") for at, each in enumerate(body.tools or ()) if _is_custom(each)
    )


def _is_custom(given: ClientTool) -> bool:
    return given.type in (None, "custom")


def _tool(given: ClientTool, path: str) -> Tool:
    if given.name is None:
        raise bad_request(f"{path}.name is missing.", param=f"{path}.name")
    check_name(given.name, f"{path}.name")
    if given.input_schema is None:
        raise bad_request(f"{path}.input_schema is missing.", param=f"{path}.input_schema")
    where = f"{path}.input_schema"
    return Tool(given.name, given.description, given.input_schema, bool(given.strict), where)


def ignored(body: CountTokensRequest) -> list[str]:
    """Paths of tools that only the vendor's servers can run, and of fields without effect."""
    found: list[str] = []
    for each in body.tools or ():
        names = without_effect(each) if _is_custom(each) else (str(each.type),)
        found += [f"tools[].{name}" for name in names]
    if body.tool_choice is not None:
        found += [f"tool_choice.{name}" for name in without_effect(body.tool_choice)]
    return found


def calling(body: CountTokensRequest) -> Calling:
    """Which tools may be called, and whether one must be.

    Raises:
        RequestRefused: `tool_choice` has a form that is not known, or names what cannot be called.
    """
    choice = body.tool_choice
    if choice is None:
        return Calling()
    parallel = not choice.disable_parallel_tool_use
    match choice.type:
        case "auto":
            return Calling(parallel=parallel)
        case "none":
            return Calling("none")
        case "any":
            return Calling("required", parallel=parallel)
        case "tool":
            # One named tool means one call of it.
            return Calling("required", (_named(body, choice.name),), parallel=False)
        case other:
            text = f"tool_choice.type must be one of auto, any, tool, none; got {other[:200]!r}."
            raise bad_request(text, param="tool_choice.type")


def _named(body: CountTokensRequest, name: str | None) -> str:
    if name is None:
        raise bad_request("tool_choice.name is missing.", param="tool_choice.name")
    named = [each for each in body.tools or () if each.name == name]
    if named and not any(map(_is_custom, named)):
        text = f"tool_choice.name is {name[:200]!r}: tools of type {named[0].type!r} are not run."
        raise bad_request(text, param="tool_choice.name")
    return name
