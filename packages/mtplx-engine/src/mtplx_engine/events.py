"""What a generation says while it runs. Plain values: this module knows neither MLX nor HTTP.

The legal order, as a regular expression:

    Started (PrefillProgress | PromptScored)* (ReasoningDelta | TextDelta | TokensScored | call)*
    Finished            where call = CallStarted CallDelta+ (CallEnded | CallBroken)

`TokensScored` comes before the text of its tokens, also amid a call.

A failure is not an event: it is raised from the iterator, so that nobody can overlook it.
"""

from dataclasses import dataclass, field
from typing import Literal

from mtplx_engine.caching import KVFormat, Restored

FinishReason = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts; one counter serves every protocol.

    Attributes:
        prompt_tokens: Tokens of the rendered prompt.
        completion_tokens: Tokens drawn, the end token and reasoning included.
        reasoning_tokens: Those of them that were reasoning.
        cached_tokens: Tokens of the prompt that were not computed again; at most all but one.
    """

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Speculation:
    """How drafting went.

    Attributes:
        mode: `mtp` when the head could draft, `copy` when drafts were copied only, `plain` when
            every token was decoded alone.
        depth: Tokens that the head drafts per usual round, at the end; 0 when it does not.
        acceptance: The rule that judged the drafts; None when plain.
        rounds: Forward passes of the trunk after the prompt.
        drafted: Drafts of the head judged at position 1, 2, ... of a round.
        accepted: Drafts of the head accepted at position 1, 2, ... of a round.
        copied: Drafts copied from earlier text.
        copies_accepted: Those of them that were accepted.
        forced: Tokens that a grammar left no choice about.
    """

    mode: Literal["mtp", "copy", "plain"]
    depth: int
    acceptance: Literal["greedy", "coupled", "rejection"] | None
    rounds: int
    drafted: tuple[int, ...]
    accepted: tuple[int, ...]
    copied: int = 0
    copies_accepted: int = 0
    forced: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall-clock seconds.

    Attributes:
        queue_s: From submit until the model first worked on the request, rendering included.
        prefill_s: Reading the prompt, up to and with the first token.
        decode_s: From the first token to the last.
    """

    queue_s: float
    prefill_s: float
    decode_s: float


@dataclass(frozen=True, slots=True)
class Echo:
    """The prompt, as text.

    Attributes:
        text: All of it.
        tokens: What each of its tokens decodes to by itself.
    """

    text: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """The prompt was rendered and fits; the count is final."""

    prompt_tokens: int
    echo: Echo | None = None


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """So many tokens of the prompt have been read."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Likelihood:
    """A token and its natural log-probability under the model's own law.

    Attributes:
        token: Its id.
        text: What it decodes to by itself; a part of a character shows as the replacement sign.
        bytes: What it stands for.
        logprob: Before temperature, penalties and filters.
    """

    token: int
    text: str
    bytes: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """A token that was emitted or read, and the likeliest ones at its place, likeliest first."""

    chosen: Likelihood
    top: tuple[Likelihood, ...]


@dataclass(frozen=True, slots=True)
class PromptScored:
    """The next tokens of the prompt; its first token has no law and is left out."""

    tokens: tuple[ScoredToken, ...]


@dataclass(frozen=True, slots=True)
class TokensScored:
    """The next tokens of the answer, the end token included."""

    tokens: tuple[ScoredToken, ...]


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of what the model thinks before it answers; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer; never empty, never half a character."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model calls a function; calls of one answer are numbered from 0."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of the JSON text of a call's arguments; never empty."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call is complete: its arguments are the JSON text of an object."""

    index: int


@dataclass(frozen=True, slots=True)
class CallBroken:
    """A call stays incomplete: cut off, or not in the form that calls have.

    Its arguments so far are not valid JSON, so nobody can take it for a call to run. Unless it was
    cut by a limit, all of its text follows as `TextDelta`, as the model wrote it.
    """

    index: int


@dataclass(frozen=True, slots=True)
class CallReport:
    """What became of an answer's calls.

    Attributes:
        dialect: How the model writes calls.
        complete: Calls that can be run.
        broken: Calls that stayed incomplete.
        dropped: Calls after the first, where only one was wanted.
    """

    dialect: str
    complete: int
    broken: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a generation that did not fail.

    Attributes:
        reason: `stop` at the model's end token or a stop string, `tool_calls` if it made a whole
            call, `length` at a limit that left something unfinished.
        stop_sequence: The stop string that ended it, or None.
        usage: Token counts.
        speculation: Draft statistics.
        timings: Where the time went.
        peak_memory: Most bytes that MLX held during any step of this request.
        calls: What became of calls; None where the answer could have none.
        restored: How much of the prompt came from the session cache.
        kv: How keys and values were quantised; None when they were not.
    """

    reason: FinishReason
    stop_sequence: str | None
    usage: Usage
    speculation: Speculation
    timings: Timings
    peak_memory: int = 0
    calls: CallReport | None = None
    restored: Restored = field(default_factory=Restored)
    kv: KVFormat | None = None


CallEvent = CallStarted | CallDelta | CallEnded | CallBroken
Event = (
    Started
    | PrefillProgress
    | PromptScored
    | ReasoningDelta
    | TextDelta
    | TokensScored
    | CallEvent
    | Finished
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an answer, folded.

    Attributes:
        name: Of the function.
        arguments: JSON text of an object; a part of one when the call is not complete.
        complete: Whether it can be run.
    """

    name: str
    arguments: str
    complete: bool


Part = ReasoningDelta | TextDelta | Call


@dataclass(frozen=True, slots=True)
class ChatResult:
    """A whole generation, folded from its events.

    Attributes:
        text: The answer.
        reasoning: What came before the answer; empty when the model did not think.
        finished: The last event.
        calls: Functions that the model calls, in order.
        parts: All of these in the order in which they were said.
        scores: Of the answer's tokens, where they were asked for.
        prompt_scores: Of the prompt's tokens but the first, where they were asked for.
        echo: The prompt, where it was asked for.
    """

    text: str
    reasoning: str
    finished: Finished
    calls: tuple[Call, ...] = ()
    parts: tuple[Part, ...] = ()
    scores: tuple[ScoredToken, ...] = ()
    prompt_scores: tuple[ScoredToken, ...] = ()
    echo: Echo | None = None
