"""`mtplx run`."""

import sys
from typing import Annotated

import typer

from mtplx_cli.options import (
    AcceptanceOption,
    BlasOption,
    CopyOption,
    DepthOption,
    KVQuantOption,
    MTPOption,
)


def run(
    prompt: Annotated[str, typer.Argument(help="What to say to the model; - reads it from stdin.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="A model folder or a Hugging Face id. Without it: a small model that is fetched"
            " once (93 MB).",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option(help="A system message.", show_default=False)
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many tokens.", show_default="up to the context"),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="0 is greedy.", show_default="the model's own")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(help="Keep this mass of probable tokens.", show_default="the model's own"),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Keep so many of the most probable tokens; 0 keeps all.",
            show_default="the model's own",
        ),
    ] = None,
    min_p: Annotated[
        float | None,
        typer.Option(
            help="Drop tokens less probable than this times the most probable.",
            show_default="the model's own",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Makes the answer reproducible.", show_default=False)
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(help="End before this text; may be given several times.", show_default=False),
    ] = None,
    mtp: MTPOption = None,
    depth: DepthOption = None,
    copy_lane: CopyOption = True,
    acceptance: AcceptanceOption = "auto",
    blas: BlasOption = "auto",
    kv_quant: KVQuantOption = "off",
    show_reasoning: Annotated[
        bool,
        typer.Option(
            "--show-reasoning",
            help="Write the model's reasoning to stderr even where that is not a terminal.",
        ),
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Write speed and acceptance to stderr at the end.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object to stdout instead of text.")
    ] = False,
) -> None:
    """Answer one prompt in this process and stream the answer to stdout.

    Example: mtplx run "What is the capital of France?" --temperature 0 --stats
    """
    from mtplx_cli.generating import Output, generate  # noqa: PLC0415
    from mtplx_cli.opening import engine_options  # noqa: PLC0415
    from mtplx_engine import (  # noqa: PLC0415
        ChatRequest,
        Conversation,
        Limits,
        Message,
        Sampling,
    )

    text = sys.stdin.read() if prompt == "-" else prompt
    if not text.strip():
        raise typer.BadParameter("the prompt is empty", param_hint="PROMPT")
    messages = [Message("system", system)] if system is not None else []
    request = ChatRequest(
        Conversation((*messages, Message("user", text))),
        Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed),
        Limits(max_tokens=max_tokens, stop=tuple(stop or ())),
    )
    options = engine_options(
        model,
        mtp=mtp,
        depth=depth,
        copy_lane=copy_lane,
        acceptance=acceptance,
        blas=blas,
        kv_quant=kv_quant,
    )
    generate(request, options, Output(show_reasoning, stats, as_json))
