"""Items of a streamed response while they grow: the events that each of their steps makes."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mtplx_client.wire.base import WireReply
from mtplx_client.wire.chat import TokenLogprob
from mtplx_client.wire.responses_output import (
    CallEvent,
    OutputItem,
    OutputPart,
    PartEvent,
    TextEvent,
)
from mtplx_server.protocols.openai_responses.heading import Heading, new_id
from mtplx_server.protocols.openai_responses.output import (
    call_item,
    input_of,
    message_item,
    reasoning_item,
    text_part,
    thought_part,
)
from mtplx_server.protocols.openai_responses.toolbox import Known

# Type, kind and fields of an event. The stream adds its number and the item's place.
Step = tuple[Callable[..., WireReply], str, dict[str, Any]]
Scores = Sequence[TokenLogprob]


class OpenItem(Protocol):
    """An item that grows. It has no content before its end."""

    def begin(self) -> list[Step]:
        """What follows the event that adds the item."""

    def more(self, text: str, scores: Scores) -> list[Step]:
        """What a piece of text makes."""

    def end(self, scores: Scores, status: str) -> list[Step]:
        """What comes before the event that ends the item."""

    def item(self, status: str) -> OutputItem:
        """The item as it is now."""


class Saying:
    """A message."""

    def __init__(self, heading: Heading) -> None:
        self._id = new_id("msg")
        self._scored = heading.scored
        self._texts: list[str] = []
        self._scores: list[TokenLogprob] = []
        self._content: list[OutputPart] = []

    def begin(self) -> list[Step]:
        """The part that is going to grow."""
        return [_part(self._id, "added", text_part(""))]

    def more(self, text: str, scores: Scores) -> list[Step]:
        """A delta."""
        self._texts.append(text)
        return [self._step("delta", delta=text, logprobs=self._kept(scores))]

    def end(self, scores: Scores, status: str) -> list[Step]:
        """The whole text, and the whole part."""
        self._kept(scores)
        part = text_part("".join(self._texts), self._scores)
        self._content = [part]
        return [
            self._step("done", text=part.text, logprobs=part.logprobs),
            _part(self._id, "done", part),
        ]

    def item(self, status: str) -> OutputItem:
        """The message."""
        return message_item(self._id, self._content, status)

    def _kept(self, scores: Scores) -> list[TokenLogprob]:
        kept = list(scores) if self._scored else []
        self._scores += kept
        return kept

    def _step(self, what: str, **fields: Any) -> Step:
        return TextEvent, f"response.output_text.{what}", {**_first(self._id), **fields}


class Thinking:
    """Thoughts."""

    def __init__(self, heading: Heading) -> None:
        self._id = new_id("rs")
        self._seals = heading.seals
        self._texts: list[str] = []
        self._content: list[OutputPart] = []

    def begin(self) -> list[Step]:
        """The part that is going to grow."""
        return [_part(self._id, "added", thought_part(""))]

    def more(self, text: str, scores: Scores) -> list[Step]:
        """A delta."""
        self._texts.append(text)
        return [self._step("delta", delta=text)]

    def end(self, scores: Scores, status: str) -> list[Step]:
        """The whole text, and the whole part."""
        part = thought_part("".join(self._texts))
        self._content = [part]
        return [self._step("done", text=part.text), _part(self._id, "done", part)]

    def item(self, status: str) -> OutputItem:
        """The thoughts."""
        return reasoning_item(self._id, self._content, status, seals=self._seals)

    def _step(self, what: str, **fields: Any) -> Step:
        return TextEvent, f"response.reasoning_text.{what}", {**_first(self._id), **fields}


class Calling:
    """A call. The input of a custom tool is told at its end, since it comes wrapped in JSON."""

    def __init__(self, tool: Known) -> None:
        self._tool = tool
        self._is_function = tool.kind == "function"
        self._id = new_id("fc" if self._is_function else "ctc")
        self._call_id = new_id("call")
        self._texts: list[str] = []

    def begin(self) -> list[Step]:
        """Nothing."""
        return []

    def more(self, text: str, scores: Scores) -> list[Step]:
        """A delta of a function's arguments."""
        self._texts.append(text)
        if not self._is_function:
            return []
        return [self._step("function_call_arguments.delta", delta=text)]

    def end(self, scores: Scores, status: str) -> list[Step]:
        """All of it; nothing when it is incomplete."""
        if status != "completed":
            return []
        if self._is_function:
            arguments = "".join(self._texts)
            return [self._step("function_call_arguments.done", arguments=arguments)]
        text = input_of("".join(self._texts))
        return [
            self._step("custom_tool_call_input.delta", delta=text),
            self._step("custom_tool_call_input.done", input=text),
        ]

    def item(self, status: str) -> OutputItem:
        """The call."""
        return call_item(self._id, self._call_id, self._tool, "".join(self._texts), status)

    def _step(self, what: str, **fields: Any) -> Step:
        return CallEvent, f"response.{what}", {"item_id": self._id, **fields}


def _first(item_id: str) -> dict[str, Any]:
    """Where the only part of an item is."""
    return {"item_id": item_id, "content_index": 0}


def _part(item_id: str, what: str, part: OutputPart) -> Step:
    return PartEvent, f"response.content_part.{what}", {**_first(item_id), "part": part}
