"""`mtplx serve`."""

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


def serve(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A model folder or a Hugging Face id. Without it: a small model that is fetched"
            " once (93 MB).",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Loopback address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8000,
    mtp: MTPOption = None,
    depth: DepthOption = None,
    copy_lane: CopyOption = True,
    acceptance: AcceptanceOption = "auto",
    blas: BlasOption = "auto",
    kv_quant: KVQuantOption = "off",
    max_active_requests: Annotated[
        int, typer.Option(min=1, help="Requests that take turns; the rest wait.")
    ] = 4,
    queue_limit: Annotated[
        int, typer.Option(min=0, help="Requests that may wait; more are refused.")
    ] = 64,
    strict_fields: Annotated[
        bool, typer.Option("--strict-fields", help="Refuse request fields that have no effect.")
    ] = False,
    strict_model: Annotated[
        bool, typer.Option("--strict-model", help="Refuse requests that name another model.")
    ] = False,
    skip_hosted_tools: Annotated[
        bool,
        typer.Option(
            "--skip-hosted-tools",
            help="Leave out tools that only a vendor's servers run, instead of refusing them.",
        ),
    ] = False,
    keepalive_s: Annotated[
        float, typer.Option(help="A streamed answer silent for so long gets a comment.")
    ] = 10.0,
    stream_interval: Annotated[
        int, typer.Option(min=1, help="Tokens in a frame of a streamed answer.")
    ] = 1,
    stream_pacing: Annotated[
        bool,
        typer.Option(
            "--stream-pacing/--no-stream-pacing",
            help="Send the tokens of a round one after the other over the time of a round.",
        ),
    ] = True,
    drain_s: Annotated[
        float, typer.Option(help="On Ctrl-C, running answers may go on for so long.")
    ] = 10.0,
) -> None:
    """Serve a model over HTTP, with the APIs that existing clients use.

    Example: mtplx serve mlx-community/Qwen3.5-4B-4bit --port 8080

    Ctrl-C stops it after running answers are done; a second Ctrl-C stops it at once.
    """
    from mtplx_cli.opening import engine_options  # noqa: PLC0415
    from mtplx_cli.serving import serve_model  # noqa: PLC0415
    from mtplx_server.settings import ServerSettings  # noqa: PLC0415

    code = serve_model(
        engine_options(
            model,
            mtp=mtp,
            depth=depth,
            copy_lane=copy_lane,
            acceptance=acceptance,
            blas=blas,
            kv_quant=kv_quant,
            max_active=max_active_requests,
            queue_limit=queue_limit,
        ),
        ServerSettings(
            host=host,
            port=port,
            keepalive_s=keepalive_s,
            stream_interval=stream_interval,
            stream_pacing=stream_pacing,
            drain_s=drain_s,
            strict_fields=strict_fields,
            strict_model=strict_model,
            skip_hosted_tools=skip_hosted_tools,
        ),
    )
    raise typer.Exit(code)
