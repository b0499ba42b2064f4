"""How the contract suite talks to a protocol, whichever it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    """What one answer says, whatever the protocol that it came in.

    Attributes:
        text: All of it.
        reasoning: The same.
        calls: Those that can be run, each with its arguments as a value.
        prompt_tokens: As the protocol's own usage has them, cached ones included.
        completion_tokens: The same.
        reasoning_tokens: The same; None where the protocol has no place for them.
        end: `stop`, `length` or `tool_calls`.
        stop_sequence: The stop string that ended it.
    """

    text: str
    reasoning: str
    calls: tuple[tuple[str, Any], ...]
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int | None
    end: str
    stop_sequence: str | None


@dataclass(frozen=True)
class Protocol:
    """One API, as the suite talks to it.

    Attributes:
        path: Of its endpoint.
        body: A request that can have every kind of answer; asks for it in one piece.
        stream: Fields that make it a stream.
        payloads: Cuts the body of a stream into the data of its messages, and checks its framing.
        join: Makes of these what the whole reply would be.
        whole: Reads the whole reply into the same form, without what differs between any two.
        said: What that says.
        failed: The error that the last of the payloads of a failed stream tells.
        content_type: Of a stream.
        scored: Fields that ask for log-probabilities; None where there are none.
        several: Fields that ask for three answers; None where there is one only.
        converses: Whether answers hold thoughts and calls.
    """

    path: str
    body: dict[str, Any]
    stream: dict[str, Any]
    payloads: Callable[[str], list[str]]
    join: Callable[[list[str]], Any]
    whole: Callable[[str], Any]
    said: Callable[[Any], Said]
    failed: Callable[[list[str]], str]
    content_type: str = "text/event-stream; charset=utf-8"
    scored: dict[str, Any] | None = None
    several: dict[str, Any] | None = None
    converses: bool = True


def sse_payloads(text: str) -> list[str]:
    """Payloads of server-sent events without a kind; each must be one `data:` line."""
    frames = text.split("\n\n")
    assert frames.pop() == ""
    assert all(frame.startswith("data: ") and "\n" not in frame for frame in frames)
    return [frame.removeprefix("data: ") for frame in frames]
