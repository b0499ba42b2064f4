"""From the engine's answer to a response, in one piece."""

from collections.abc import Sequence
from dataclasses import dataclass

from mtplx_client.wire.responses_output import OutputItem, Response
from mtplx_engine.events import Call, ChatResult
from mtplx_server.protocols.openai_logprobs import chat_logprob
from mtplx_server.protocols.openai_responses.heading import Heading, new_id
from mtplx_server.protocols.openai_responses.output import (
    call_item,
    message_item,
    reasoning_item,
    text_part,
    thought_part,
)
from mtplx_server.protocols.openai_responses.stream import ResponsesStream
from mtplx_server.protocols.openai_responses.toolbox import Known


@dataclass(frozen=True, slots=True)
class ResponsesEncoder:
    """Writes the answer to one request."""

    heading: Heading

    def reply(self, results: Sequence[ChatResult]) -> Response:
        """The answer, whole: thoughts, text, calls."""
        (result,) = results
        output: list[OutputItem] = []
        cut = result.finished.reason == "length" and all(call.complete for call in result.calls)
        last = "incomplete" if cut else "completed"
        says = bool(result.text) or not (result.reasoning or result.calls)
        if result.reasoning:
            status = "completed" if says else last
            parts = [thought_part(result.reasoning)]
            seals = self.heading.seals
            output.append(reasoning_item(new_id("rs"), parts, status, seals=seals))
        if says:
            scores = map(chat_logprob, result.scores if self.heading.scored else ())
            part = text_part(result.text, list(scores))
            output.append(message_item(new_id("msg"), [part], last))
        output += [self._call(call) for call in result.calls]
        return self.heading.ended(output, result.finished)

    def stream(self) -> ResponsesStream:
        """A writer of the streamed answer."""
        return ResponsesStream(self.heading)

    def _call(self, call: Call) -> OutputItem:
        tool = self.heading.known.get(call.name, Known("function", call.name))
        status = "completed" if call.complete else "incomplete"
        item_id = new_id("fc" if tool.kind == "function" else "ctc")
        return call_item(item_id, new_id("call"), tool, call.arguments, status)
