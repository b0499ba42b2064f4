"""Exact multi-token-prediction decoding of language models on MLX.

    from mtplx_engine import ChatRequest, Conversation, Engine, Message

    with Engine.open() as engine:
        request = ChatRequest(Conversation((Message("user", "Hello"),)))
        for event in engine.submit(request):
            print(event)

Importing this package does not import MLX; `Engine.open` does.
"""

from mtplx_engine._version import __version__
from mtplx_engine.engine import Engine, EngineOptions
from mtplx_engine.errors import (
    Cancelled,
    ContextOverflow,
    EngineError,
    EngineFailed,
    InvalidRequest,
    ModelError,
    ModelInvalid,
    ModelNotFound,
    NonFiniteLogits,
    Overloaded,
)
from mtplx_engine.events import (
    ChatResult,
    Event,
    Finished,
    PrefillProgress,
    ReasoningDelta,
    Speculation,
    Started,
    TextDelta,
    Timings,
    Usage,
)
from mtplx_engine.info import EngineStatus, ModelInfo
from mtplx_engine.interface import ChatEngine
from mtplx_engine.request import (
    ChatRequest,
    Conversation,
    Limits,
    Message,
    Prompt,
    RawText,
    Sampling,
    TokenIds,
)
from mtplx_engine.runtime.generation import Generation, fold

__all__ = [
    "Cancelled",
    "ChatEngine",
    "ChatRequest",
    "ChatResult",
    "ContextOverflow",
    "Conversation",
    "Engine",
    "EngineError",
    "EngineFailed",
    "EngineOptions",
    "EngineStatus",
    "Event",
    "Finished",
    "Generation",
    "InvalidRequest",
    "Limits",
    "Message",
    "ModelError",
    "ModelInfo",
    "ModelInvalid",
    "ModelNotFound",
    "NonFiniteLogits",
    "Overloaded",
    "PrefillProgress",
    "Prompt",
    "RawText",
    "ReasoningDelta",
    "Sampling",
    "Speculation",
    "Started",
    "TextDelta",
    "Timings",
    "TokenIds",
    "Usage",
    "__version__",
    "fold",
]
