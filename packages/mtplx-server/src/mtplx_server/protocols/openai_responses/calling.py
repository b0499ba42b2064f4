"""Which tools may be called: `tool_choice`, in the engine's vocabulary."""

from typing import Any

from mtplx_engine.tools import Calling
from mtplx_server.errors import bad_request
from mtplx_server.protocols.openai_responses.toolbox import Toolbox
from mtplx_server.protocols.tools import allowed_mode

_PARAM = "tool_choice"
_KINDS = ("function", "custom")


def calling(choice: str | dict[str, Any] | None, parallel: bool | None, tools: Toolbox) -> Calling:
    """Read it.

    Args:
        choice: `tool_choice`.
        parallel: `parallel_tool_calls`.
        tools: Those of the request.

    Raises:
        RequestRefused: The form is not known, or what it names cannot be called.
    """
    several = parallel is not False
    match choice:
        case None | "auto":
            return Calling(parallel=several)
        case "none":
            return Calling("none", parallel=several)
        case "required":
            return Calling("required", parallel=several)
        case {"type": "allowed_tools", "mode": mode, "tools": list(allowed)}:
            names = [
                _named(each, f"{_PARAM}.tools[{at}]", tools)
                for at, each in enumerate(allowed)
                if not _was_dropped(each, tools)
            ]
            return Calling(allowed_mode(mode, f"{_PARAM}.mode"), tuple(names), parallel=several)
        case {"type": str(kind)} if kind != "allowed_tools":
            # One named tool means one call of it.
            return Calling("required", (_named(choice, _PARAM, tools),), parallel=False)
        case other:
            text = (
                "tool_choice must be 'auto', 'none', 'required', a function, a custom tool or"
                f" allowed_tools with mode and tools; got {str(other)[:200]}."
            )
            raise bad_request(text, param=_PARAM)


def _was_dropped(choice: Any, tools: Toolbox) -> bool:
    """Whether a tool is meant that was left out, and named as such."""
    return isinstance(choice, dict) and choice.get("type") in tools.dropped


def _named(choice: Any, path: str, tools: Toolbox) -> str:
    """The engine's name of the tool that is meant."""
    match choice:
        case {"type": str(kind), "name": str(name)} if kind in _KINDS:
            pass
        case {"type": str(kind)} if kind not in _KINDS:
            text = f"{path}: tools of type {kind[:100]!r} cannot be called here."
            raise bad_request(text, param=path, code="unsupported_value")
        case _:
            raise bad_request(f"{path} must have a type and a name.", param=path)
    namespace = choice.get("namespace")
    meant = [
        engine_name
        for engine_name in tools.named.get((kind, name), ())
        if namespace in (None, tools.known[engine_name].namespace)
    ]
    if len(meant) > 1:
        text = f"{path}: there is more than one tool {name[:200]!r}; name its namespace, too."
        raise bad_request(text, param=path)
    if not meant:
        why = "which was left out" if name in tools.dropped else "which is not among the tools"
        raise bad_request(f"{path} names {name[:200]!r}, {why}.", param=path)
    return meant[0]
