"""The dialects that are known, and how a model's chat template tells which one it writes."""

from mtplx_engine.chat.dialects import (
    deepseek,
    gemma,
    glm,
    harmony,
    json_object,
    kimi,
    llama3,
    minimax,
    mistral,
    pythonic,
    qwen_xml,
)
from mtplx_engine.chat.dialects.base import Dialect

# The first whose signature is in the template wins. `<tool_call>` also stands in templates of
# other dialects, so the one that knows nothing else comes last.
DIALECTS: tuple[Dialect, ...] = (
    harmony.DIALECT,
    kimi.DIALECT,
    deepseek.V3,
    deepseek.V31,
    mistral.NAMED,
    mistral.LIST,
    llama3.DIALECT,
    gemma.GEMMA4,
    gemma.FUNCTION_GEMMA,
    minimax.DIALECT,
    glm.DIALECT,
    qwen_xml.DIALECT,
    pythonic.LLAMA,
    pythonic.LFM2,
    json_object.DIALECT,
)


def dialect_of(template: str) -> Dialect | None:
    """The dialect of a model with this chat template; None when it is not known."""
    for dialect in DIALECTS:
        if all(mark in template for mark in dialect.signature):
            return dialect
    return None
