"""What is served, in Ollama's words. Nothing is fetched, loaded or removed by a request."""

from datetime import UTC, datetime
from hashlib import sha256
from typing import NoReturn

from mtplx_client.wire.base import WireReply, WireRequest
from mtplx_client.wire.ollama import OllamaModelRequest, OllamaStatus
from mtplx_client.wire.ollama_models import (
    OllamaCard,
    OllamaCards,
    OllamaDetails,
    OllamaLoadedCard,
    OllamaLoadedCards,
    OllamaModel,
    OllamaVersion,
)
from mtplx_engine.info import ModelInfo
from mtplx_server._version import __version__
from mtplx_server.errors import Problem, RequestRefused, bad_request, unknown_model
from mtplx_server.protocols.base import Decoded, Served, Snapshot, Visit
from mtplx_server.protocols.ollama.asking import plain_name
from mtplx_server.protocols.ollama.at_once import AtOnce
from mtplx_server.protocols.ollama.thinking import thinks

# Of Ollama's API. Codex refuses to talk to anything older.
API_VERSION = "0.13.4"

_NEVER = "9999-12-31T23:59:59Z"


def version(_: Snapshot, __: Visit) -> tuple[int, WireReply]:
    """`GET /api/version`."""
    return 200, OllamaVersion(version=API_VERSION, mtplx=__version__)


def tags(snapshot: Snapshot, _: Visit) -> tuple[int, WireReply]:
    """`GET /api/tags`."""
    model = snapshot.model
    card = OllamaCard(
        name=model.id,
        model=model.id,
        modified_at=_loaded_at(model),
        size=0,
        digest=_digest(model),
        details=_details(model),
    )
    return 200, OllamaCards(models=[card])


def ps(snapshot: Snapshot, _: Visit) -> tuple[int, WireReply]:
    """`GET /api/ps`."""
    model = snapshot.model
    card = OllamaLoadedCard(
        name=model.id,
        model=model.id,
        size=0,
        digest=_digest(model),
        details=_details(model),
        expires_at=_NEVER,
        size_vram=0,
        context_length=model.context_length,
    )
    return 200, OllamaLoadedCards(models=[card])


def show(body: OllamaModelRequest, snapshot: Snapshot) -> OllamaModel:
    """`POST /api/show`.

    Raises:
        RequestRefused: Another model is named, and the server is strict about it.
    """
    model = snapshot.model
    name = plain_name(body.model or body.name, model)
    if snapshot.strict_model and name not in (None, model.id):
        raise unknown_model(str(name), model.id)
    tools = ["tools"] if model.knows_tools else []
    thinking = ["thinking"] if thinks(model) else []
    return OllamaModel(
        modelfile="",
        parameters="",
        template="",
        details=_details(model),
        model_info={
            "general.architecture": model.architecture,
            "general.parameter_count": model.parameters,
            f"{model.architecture}.context_length": model.context_length,
        },
        capabilities=["completion", *tools, *thinking],
        modified_at=_loaded_at(model),
    )


def pull(body: OllamaModelRequest, served: Served, _: str) -> Decoded:
    """`POST /api/pull`: clients pull what they are about to use; the served model is here.

    Raises:
        RequestRefused: Another model is named.
    """
    name = plain_name(body.model or body.name, served.model)
    if name not in (None, served.model.id):
        text = (
            f"The model {name!r} cannot be pulled; this server serves {served.model.id!r}."
            " Models are chosen when it starts: mtplx serve MODEL."
        )
        problem = Problem(404, "invalid_request_error", text, "model_not_found", "model")
        raise RequestRefused(problem)
    done = OllamaStatus(status="success")
    return Decoded((), 1, body.stream is not False, AtOnce(done))


def embed(_: WireRequest, __: Snapshot) -> NoReturn:
    """`POST /api/embed` and `POST /api/embeddings`.

    Raises:
        RequestRefused: Always.
    """
    raise bad_request("This server serves no embedding model.", code="unsupported_value")


def _details(model: ModelInfo) -> OllamaDetails:
    return OllamaDetails(
        parent_model="",
        format="mlx",
        family=model.architecture,
        families=[model.architecture],
        parameter_size=_in_short(model.parameters),
        quantization_level=model.quantization,
    )


def _in_short(number: int) -> str:
    """For people: 134515008 is `134.5M`."""
    for letter, unit in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if number >= unit:
            return f"{number / unit:.1f}{letter}"
    return str(number)


def _digest(model: ModelInfo) -> str:
    return sha256(f"{model.id}\n{model.source}".encode()).hexdigest()


def _loaded_at(model: ModelInfo) -> str:
    return datetime.fromtimestamp(model.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
