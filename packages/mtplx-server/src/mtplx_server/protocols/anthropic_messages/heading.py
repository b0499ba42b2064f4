"""What all answers to one request have in common: their head, and how their ends are told."""

from dataclasses import dataclass
from typing import Any

from mtplx_client.wire.anthropic import MessageReply, MessagesUsage, OutputTokensDetails, ReplyBlock
from mtplx_engine.events import Finished
from mtplx_server.protocols.report import Asked, Counts, count, report


@dataclass(frozen=True, slots=True)
class Heading:
    """What an answer needs to know of its request.

    Attributes:
        id: Id of the answer.
        asked: What the report tells of the request.
        max_tokens: The most tokens that were wanted.
        context_length: Tokens that the model can hold.
        thinks: Whether thoughts may come.
    """

    id: str
    asked: Asked
    max_tokens: int
    context_length: int
    thinks: bool

    def message(self, content: list[ReplyBlock], **rest: Any) -> MessageReply:
        """A message, with further fields."""
        model, role = self.asked.model, "assistant"
        return MessageReply(
            id=self.id, type="message", role=role, model=model, content=content, **rest
        )

    def counts(self, finished: Finished) -> dict[str, Any]:
        """Token counts and statistics, as fields."""
        counts = count([finished], 1)
        return {"usage": usage(counts), "mtplx": report([finished], self.asked)}

    def end(self, finished: Finished | None) -> dict[str, Any]:
        """Why an answer ended, as fields; None: it has not."""
        reason = self._reason(finished) if finished else None
        text = finished.stop_sequence if finished and reason == "stop_sequence" else None
        return {"stop_reason": reason, "stop_sequence": text}

    def _reason(self, finished: Finished) -> str:
        match finished.reason:
            case "tool_calls":
                return "tool_use"
            case "stop":
                return "end_turn" if finished.stop_sequence is None else "stop_sequence"
            case "length":
                used = finished.usage
                full = used.prompt_tokens + used.completion_tokens >= self.context_length
                early = used.completion_tokens < self.max_tokens
                return "model_context_window_exceeded" if full and early else "max_tokens"


def usage(counts: Counts) -> MessagesUsage:
    """Token counts; those of the prompt that were not computed again are told apart."""
    return MessagesUsage(
        input_tokens=counts.prompt - counts.cached,
        cache_creation_input_tokens=0,
        cache_read_input_tokens=counts.cached,
        output_tokens=counts.completion,
        output_tokens_details=OutputTokensDetails(thinking_tokens=counts.reasoning),
    )
