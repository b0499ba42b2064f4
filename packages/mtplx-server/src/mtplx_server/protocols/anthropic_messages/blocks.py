"""The blocks of a whole answer."""

from collections.abc import Iterable
from itertools import groupby
from uuid import uuid4

from mtplx_client.wire.anthropic import ReplyBlock
from mtplx_engine.events import Call, Part, ReasoningDelta
from mtplx_server.protocols.arguments import values

# Clients keep it and send it back; nobody checks it.
SIGNATURE = "mtplx"


def blocks(parts: Iterable[Part]) -> list[ReplyBlock]:
    """What was said, in order. Calls that cannot be run are left out, and part nothing."""
    made: list[ReplyBlock] = []
    said = (each for each in parts if not isinstance(each, Call) or each.complete)
    for kind, group in groupby(said, type):
        texts: list[str] = []
        for each in group:
            if isinstance(each, Call):
                made.append(_tool_use(each))
            else:
                texts.append(each.text)
        if kind is ReasoningDelta:
            block = ReplyBlock(type="thinking", thinking="".join(texts), signature=SIGNATURE)
            made.append(block)
        elif texts:
            made.append(ReplyBlock(type="text", text="".join(texts)))
    return made


def _tool_use(call: Call) -> ReplyBlock:
    given = values(call.arguments)
    return ReplyBlock(type="tool_use", id=call_id(), name=call.name, input=given)


def call_id() -> str:
    """A new id of a call."""
    return f"toolu_{uuid4().hex[:24]}"
