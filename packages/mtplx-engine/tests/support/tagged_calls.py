"""The dialects whose arguments are not JSON text, a writer of calls in tags, and reading whole."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtplx_engine.chat.calls import CallReader
from mtplx_engine.chat.dialects import gemma, glm, minimax, pythonic, qwen_xml
from mtplx_engine.chat.dialects.base import Dialect
from mtplx_engine.chat.scanning import Parsed
from mtplx_engine.events import CallDelta, CallEnded, CallStarted
from mtplx_engine.tools import Tool

TAGGED = (qwen_xml.DIALECT, glm.DIALECT, minimax.DIALECT)
GEMMA = (gemma.GEMMA4, gemma.FUNCTION_GEMMA)
ALL = (*TAGGED, *GEMMA, pythonic.LFM2, pythonic.LLAMA)


def tool(properties: Mapping[str, Any], **more: Any) -> Tool:
    return Tool("f", parameters={"type": "object", "properties": properties, **more})


def read(dialect: Dialect, tools: Sequence[Tool], text: str) -> list[Parsed]:
    reader = CallReader(dialect, tools)
    return [*reader.feed(text), *reader.close(limited=False)]


def arguments(events: Sequence[Parsed]) -> list[Any]:
    """Of calls that are all whole, without any text."""
    calls: list[str] = []
    for event in events:
        assert isinstance(event, CallStarted | CallDelta | CallEnded), event
        calls += [""] if isinstance(event, CallStarted) else []
        calls[-1] += event.text if isinstance(event, CallDelta) else ""
    assert len(calls) == sum(isinstance(event, CallEnded) for event in events)
    return [json.loads(call) for call in calls]


WRITE: dict[str, Callable[[str], str]] = {
    "qwen_xml": lambda value: (
        f"<tool_call>\n<function=f>\n<parameter=x>\n{value}\n</parameter>\n</function>\n</tool_call>"
    ),
    "glm": lambda value: (
        f"<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>{value}</arg_value>\n</tool_call>"
    ),
    "minimax": lambda value: (
        f'<minimax:tool_call>\n<invoke name="f">\n<parameter name="x">{value}</parameter>\n'
        "</invoke>\n</minimax:tool_call>"
    ),
}
