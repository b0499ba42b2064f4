"""`mtplx forge`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from mtplx_cli.options import BlasOption

forge = typer.Typer(no_args_is_help=True, help="Make MTP heads for models that have none.")


@forge.callback()
def _root() -> None:
    """Keep `train` a word of its own while it is the only one."""


@forge.command()
def train(
    model: Annotated[
        str,
        typer.Argument(help="A model folder, a Hugging Face id, or smollm2-135m-instruct."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where the head goes: a .safetensors file, or a folder, in which it is called"
            " mtp.safetensors. Without it: the run folder.",
            show_default=False,
        ),
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where the run keeps text, laws, checkpoint and curve.csv. About 4 bytes times"
            " the model's width for each token of text. Without it: forge-MODEL here.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--no-resume",
            help="Go on with what the run folder holds, or refuse one that holds a run.",
        ),
    ] = True,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Time to train, over all runs that go on.")
    ] = 60.0,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="End after so many steps, if that is sooner.", show_default=False),
    ] = None,
    tokens: Annotated[
        int, typer.Option(min=0, help="Tokens the model writes itself to learn from.")
    ] = 200_000,
    prompts: Annotated[
        Path | None,
        typer.Option(
            help="What it is asked meanwhile, a prompt per line. Without it: a few hundred chat"
            " prompts of many kinds.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="A text file to learn from as well; may be given often."),
    ] = None,
    draft_vocab: Annotated[
        str | None,
        typer.Option(
            metavar="N|full",
            help="Draft over the N most frequent tokens, or all. Without it: those of the head it"
            " starts from, or 8192.",
            show_default=False,
        ),
    ] = None,
    depths: Annotated[
        int, typer.Option(min=1, max=4, help="Depths that are trained; the first counts most.")
    ] = 2,
    length: Annotated[int, typer.Option(min=32, help="Tokens of a sequence.")] = 192,
    batch: Annotated[int, typer.Option(min=1, help="Sequences per step.")] = 8,
    learning_rate: Annotated[
        float, typer.Option(min=0.0, help="The largest; it falls as a cosine.")
    ] = 5e-4,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63, help="Of text, order and fresh weights.")
    ] = 0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Leave a head that the model has aside.")
    ] = False,
    blas: BlasOption = "auto",
) -> None:
    """Train an MTP head for a model, by what the model itself would say next.

    The model first answers prompts; a small head then learns to guess its law of the token after
    next. Nothing of the model is changed. A stopped run goes on when the same command is given
    again. It starts from the head that the model has, if any.

    Overlap, in the lines it prints, is the share of drafts that sampling at temperature 1 accepts;
    agreement is that of greedy decoding. Both are measured on text that is held out.

    Example: mtplx forge train ./my-llama --out ./my-llama --minutes 90
    """
    if blas != "auto":
        os.environ["MTPLX_BLAS"] = blas  # the engine looks there when it first loads MLX
    from mtplx_cli.forging import forge_and_report  # noqa: PLC0415
    from mtplx_engine.forge.plan import Plan, Recipe  # noqa: PLC0415

    home = run_dir or Path("forge-" + Path(model).resolve().name)
    plan = Plan(
        run_dir=home,
        out=out or home,
        resume=resume,
        tokens=tokens,
        prompts=prompts,
        texts=tuple(text or ()),
        draft_vocab=_vocab_size(draft_vocab),
        fresh=fresh,
        longest=length,
        recipe=Recipe(
            seconds=60 * minutes,
            most_steps=steps,
            depths=depths,
            batch=batch,
            learning_rate=learning_rate,
            seed=seed,
        ),
    )
    forge_and_report(model, plan)


def _vocab_size(wanted: str | None) -> int | None:
    """The number of tokens to draft over; 0 means all."""
    if wanted is None:
        return None
    if wanted == "full":
        return 0
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    raise typer.BadParameter(f"{wanted!r} is neither a number nor full", param_hint="--draft-vocab")
