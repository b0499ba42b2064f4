"""What a run is told and what it says: plain values. No MLX here."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MEASURED_DEPTHS = 4


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train.

    Attributes:
        seconds: Time to spend on steps and measurements, over all runs that resume one another.
        most_steps: Steps after which to end even if time is left.
        depths: Depths that are trained.
        batch: Sequences per step.
        learning_rate: The largest; it rises over `warm_up` steps and falls as a cosine of what is
            spent.
        least_rate: What the cosine ends at, as a share of the largest.
        warm_up: Steps.
        weight_decay: AdamW's.
        clip: Largest norm of the whole gradient.
        seed: Of the text, the order of the data and fresh weights.
    """

    seconds: float
    most_steps: int | None = None
    depths: int = 2
    batch: int = 8
    learning_rate: float = 5e-4
    least_rate: float = 0.02
    warm_up: int = 20
    weight_decay: float = 0.02
    clip: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    Attributes:
        run_dir: Where the run keeps its state.
        out: A head file, or the folder it shall lie in.
        recipe: How to train.
        resume: Go on with what the run folder holds; otherwise refuse one that holds a run.
        tokens: Tokens that the model writes itself.
        prompts: One prompt per line, or None for those that come along.
        texts: Text files to learn from as well.
        draft_vocab: How many tokens to draft over, 0 for all; None keeps those of an existing head.
        fresh: Leave an existing head aside.
        longest: Tokens of a sequence.
    """

    run_dir: Path
    out: Path
    recipe: Recipe
    resume: bool = True
    tokens: int = 200_000
    prompts: Path | None = None
    texts: tuple[Path, ...] = ()
    draft_vocab: int | None = None
    fresh: bool = False
    longest: int = 192


@dataclass(frozen=True, slots=True)
class Measured:
    """Averages over held-out positions, one for each depth from 1.

    Attributes:
        overlap: sum_v min(p_v, q_v) at temperature 1: the share of drafts that rejection sampling
            accepts, provided those before them were accepted.
        agreement: How often the head's most probable token is the trunk's.
    """

    overlap: tuple[float, ...]
    agreement: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement on held-out text.

    Attributes:
        step: Training steps before it.
        tokens: Positions read before it.
        seconds: Time spent before it.
        loss: Of the step before it.
        measured: What came out.
    """

    step: int
    tokens: int
    seconds: float
    loss: float
    measured: Measured


@dataclass(frozen=True, slots=True)
class ForgeProgress:
    """How far a run has come.

    Attributes:
        stage: `load` reads the model, `write` makes text, `read` computes the trunk's laws, `train`
            takes steps.
        detail: What is being worked on, for people.
        done: Tokens for `write` and `read`, seconds for `train`.
        total: Of the same; 0 when unknown.
        point: A measurement that was just made.
    """

    stage: Literal["load", "write", "read", "train"]
    detail: str
    done: float = 0
    total: float = 0
    point: Point | None = None


OnForgeProgress = Callable[[ForgeProgress], None]


@dataclass(frozen=True, slots=True)
class Forged:
    """What came out.

    Attributes:
        path: The head file.
        first: The measurement before the first step.
        best: That of the head in the file.
        steps: Taken, over all runs in the folder.
    """

    path: Path
    first: Measured
    best: Measured
    steps: int
