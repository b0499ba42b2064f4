"""Functions for models whose chat template does not know any: told of in plain words.

The model is asked to write calls as `dialects/json_object.py` reads them.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from mtplx_engine.conversation import Message
from mtplx_engine.tools import Tool

_INTRODUCTION = """\
You can call functions. To call one, write

<tool_call>
{"name": "the function", "arguments": {"parameter": "value"}}
</tool_call>

and stop. You are then given its result. Call a function only when it helps with what you are \
asked; otherwise just answer. These are the functions, one a line:

"""


def in_plain_words(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """The same conversation without tools, calls and results, which become text."""
    plain = [_plain(message) for message in messages]
    joined: list[Message] = []
    for role, group in groupby(plain, key=lambda message: message.role):
        same = list(group)
        results = role == "user" and any(message.text.startswith("<tool_resp") for message in same)
        # Many templates insist on user and assistant taking turns.
        joined += [Message(role, "\n".join(each.text for each in same))] if results else same
    if not tools:
        return joined
    described = _INTRODUCTION + "\n".join(json.dumps(tool_dict(tool)["function"]) for tool in tools)
    if joined[0].role == "system":
        return [replace(joined[0], text=f"{joined[0].text}\n\n{described}"), *joined[1:]]
    return [Message("system", described), *joined]


def _plain(message: Message) -> Message:
    if message.role == "tool":
        return Message("user", f"<tool_response>\n{message.text}\n</tool_response>")
    calls = [
        f'<tool_call>\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}\n'
        "</tool_call>"
        for call in message.calls
    ]
    text = "\n".join([message.text, *calls] if message.text else calls)
    return replace(message, text=text, calls=())


def tool_dict(tool: Tool) -> dict[str, dict[str, object] | str]:
    """A tool as chat templates take it."""
    function: dict[str, object] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}
