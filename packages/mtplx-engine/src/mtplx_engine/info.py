"""What an engine says of itself: plain values that cross threads and packages. No MLX here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

EngineState = Literal["ready", "failed", "closed"]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is being served.

    Attributes:
        id: The name that requests and listings use.
        source: The folder, in full.
        architecture: mlx-lm's model type.
        parameters: Number of trunk parameters.
        context_length: Tokens of prompt and answer together.
        quantization: For example "4-bit, group 64", or "none".
        dtype: Type of the activations.
        mtp: Whether drafting is on.
        mtp_reason: A clause that begins with "on" or "off" and says why.
        default_depth: Tokens drafted per round where a fixed number is needed; 0 when plain.
        max_depth: The largest depth that a request may ask for; 0 when there is no head.
        backend: Device and linear-algebra library in use, in one phrase.
        created: Unix time at which it was loaded.
        adaptive_depth: Whether requests that do not say draft as many tokens as pays.
        can_copy: Whether drafts can be copied from earlier text.
        efforts: Levels of thinking that the model tells apart, from little to much.
        tool_dialect: How the model writes calls of functions.
        knows_tools: Whether its chat template shows functions; if not, they are explained to it in
            plain words.
        template_variables: Names that the chat template asks for; None where that is not known.
        kv_groups: Group sizes in which keys and values can be quantised, the best first; empty
            when they cannot.
        kv_obstacle: A clause that says why they cannot; empty when they can.
    """

    id: str
    source: str
    architecture: str
    parameters: int
    context_length: int
    quantization: str
    dtype: str
    mtp: bool
    mtp_reason: str
    default_depth: int
    max_depth: int
    backend: str
    created: int
    adaptive_depth: bool = False
    can_copy: bool = False
    efforts: tuple[str, ...] = ()
    tool_dialect: str = ""
    knows_tools: bool = False
    template_variables: frozenset[str] | None = None
    kv_groups: tuple[int, ...] = ()
    kv_obstacle: str = ""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far start-up has come.

    Attributes:
        stage: `fetch` downloads, `convert` writes a model folder, `load` reads weights, `probe`
            measures the head.
        detail: What is being worked on, for people.
        done: Units of work done; bytes for `fetch`.
        total: Units of work in all; 0 when unknown.
    """

    stage: Literal["fetch", "convert", "load", "probe"]
    detail: str
    done: int = 0
    total: int = 0


OnLoadProgress = Callable[[LoadProgress], None]


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """A snapshot that costs nothing and never waits for the model.

    Attributes:
        state: `ready` while requests are served.
        reason: Why it is not ready; empty otherwise.
        active: Requests being worked on.
        queued: Requests waiting.
        completed: Requests that ended, in any way, since the start.
    """

    state: EngineState
    reason: str
    active: int
    queued: int
    completed: int
