"""Serving: opens the engine under a banner and hands it to the server."""

import json
import logging
import shlex

from rich.console import Console

from mtplx_cli._version import __version__
from mtplx_cli.console import status_console
from mtplx_cli.opening import open_engine
from mtplx_cli.sizes import show_size
from mtplx_engine import CacheStatus, ChatEngine, EngineOptions, ModelInfo
from mtplx_server.process import run
from mtplx_server.settings import ServerSettings


def serve_model(options: EngineOptions, settings: ServerSettings) -> int:
    """Serve until told to stop; return the exit status.

    Raises:
        EngineError: The model cannot be served.
        ServerError: The address cannot be listened on.
    """
    console = status_console()
    console.print(f"mtplx {__version__}")
    _log_to_stderr()

    def open_with_banner() -> ChatEngine:
        engine = open_engine(options, console, verbose=True)
        _show_model(console, engine.model)
        _show_cache(console, engine.cache_status())
        served.append(engine.model.id)
        return engine

    served: list[str] = []
    return run(settings, open_with_banner, on_ready=lambda url: _show_url(console, url, served[0]))


def _log_to_stderr() -> None:
    """Our own packages speak from INFO on, the libraries below them from WARNING on."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("mtplx_engine", "mtplx_server"):
        logging.getLogger(name).setLevel(logging.INFO)
    # On a terminal Sanic warns that its development mode is off.
    logging.getLogger("sanic").setLevel(logging.ERROR)


def _show_model(console: Console, model: ModelInfo) -> None:
    size = f"{model.parameters / 1e6:,.0f} M parameters"
    rows = [
        ("Model", model.id),
        ("", model.source),
        ("", f"{model.architecture}, {size}, context {model.context_length:,} tokens"),
        ("", f"quantization {model.quantization}, activations {model.dtype}"),
        ("MTP", model.mtp_reason),
    ]
    if model.mtp:
        depth = "adaptive" if model.adaptive_depth else str(model.default_depth)
        rows.append(("", f"depth {depth}, at most {model.max_depth}"))
    for label, text in (*rows, ("Backend", model.backend)):
        console.print(f"{label:<8} {text}", markup=False)


def _show_cache(console: Console, cache: CacheStatus) -> None:
    text = cache.trouble or f"up to {show_size(cache.ram.limit)} in memory"
    console.print(f"{'Sessions':<8} {text}", markup=False)


def _show_url(console: Console, url: str, model: str) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "Say hello."}]}
    command = [
        f"curl {url}/v1/chat/completions",
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(json.dumps(body))}",
    ]
    console.print(
        f"{'Ready':<8} {url}  (Ctrl-C stops)\n\n" + " \\\n  ".join(command) + "\n", markup=False
    )
