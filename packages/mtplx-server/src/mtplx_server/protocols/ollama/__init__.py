"""Ollama's API under `/api/`."""

from mtplx_client.wire.ollama import (
    OllamaAny,
    OllamaChatReply,
    OllamaChatRequest,
    OllamaError,
    OllamaGenerateReply,
    OllamaGenerateRequest,
    OllamaModelRequest,
    OllamaStatus,
)
from mtplx_client.wire.ollama_models import (
    OllamaCards,
    OllamaLoadedCards,
    OllamaModel,
    OllamaVersion,
)
from mtplx_server.protocols.base import Action, ApiProtocol, Generate, Lookup
from mtplx_server.protocols.ollama import decode, models
from mtplx_server.protocols.ollama.failing import error_reply

PROTOCOL = ApiProtocol(
    name="ollama",
    endpoints=(
        Generate(
            "/api/chat",
            "Answer a conversation",
            OllamaChatRequest,
            decode.chat,
            reply=OllamaChatReply,
            chunks=(OllamaChatReply,),
            framing="ndjson",
        ),
        Generate(
            "/api/generate",
            "Answer or continue a prompt",
            OllamaGenerateRequest,
            decode.generate,
            reply=OllamaGenerateReply,
            chunks=(OllamaGenerateReply,),
            framing="ndjson",
        ),
        Generate(
            "/api/pull",
            "See that the served model is there",
            OllamaModelRequest,
            models.pull,
            reply=OllamaStatus,
            chunks=(OllamaStatus,),
            framing="ndjson",
        ),
        Action("/api/show", "Tell of a model", OllamaModelRequest, models.show, OllamaModel),
        Action("/api/embed", "Refuse to embed", OllamaAny, models.embed, OllamaError),
        Action("/api/embeddings", "Refuse to embed", OllamaAny, models.embed, OllamaError),
        Lookup("/api/tags", "List what is served", models.tags, (OllamaCards,)),
        Lookup("/api/ps", "List what is in memory", models.ps, (OllamaLoadedCards,)),
        Lookup("/api/version", "Tell versions", models.version, (OllamaVersion,)),
    ),
    error=error_reply,
    envelope=OllamaError,
    prefixes=("/api/",),
)
