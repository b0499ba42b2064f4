"""Exact multi-token-prediction decoding of language models on MLX.

    from mtplx_engine import ChatRequest, Conversation, Engine, Message

    with Engine.open() as engine:
        request = ChatRequest(Conversation((Message("user", "Hello"),)))
        for event in engine.submit(request):
            print(event)

Importing this package does not import MLX; `Engine.open` does.
"""

from mtplx_engine._version import __version__
from mtplx_engine.caching import (
    CacheStatus,
    Cleared,
    KVFormat,
    KVQuant,
    Restored,
    SessionCacheOptions,
    SessionInfo,
)
from mtplx_engine.constraint import Grammar, JsonObject, JsonSchema, Lark, Regex
from mtplx_engine.conversation import Conversation, Message, Prompt, RawText, TokenIds
from mtplx_engine.engine import Engine, EngineOptions
from mtplx_engine.errors import (
    Cancelled,
    ContextOverflow,
    EngineError,
    EngineFailed,
    InsufficientMemory,
    InvalidRequest,
    ModelError,
    ModelInvalid,
    ModelNotFound,
    NonFiniteLogits,
    Overloaded,
)
from mtplx_engine.events import (
    Call,
    CallBroken,
    CallDelta,
    CallEnded,
    CallStarted,
    ChatResult,
    Event,
    Finished,
    Likelihood,
    PrefillProgress,
    PromptScored,
    ReasoningDelta,
    ScoredToken,
    Speculation,
    Started,
    TextDelta,
    Timings,
    TokensScored,
    Usage,
)
from mtplx_engine.info import EngineStatus, ModelInfo
from mtplx_engine.interface import ChatEngine
from mtplx_engine.request import ChatRequest, Limits, Sampling
from mtplx_engine.runtime.generation import Generation, fold
from mtplx_engine.tools import Calling, Tool, ToolCall

__all__ = [
    "CacheStatus",
    "Call",
    "CallBroken",
    "CallDelta",
    "CallEnded",
    "CallStarted",
    "Calling",
    "Cancelled",
    "ChatEngine",
    "ChatRequest",
    "ChatResult",
    "Cleared",
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
    "Grammar",
    "InsufficientMemory",
    "InvalidRequest",
    "JsonObject",
    "JsonSchema",
    "KVFormat",
    "KVQuant",
    "Lark",
    "Likelihood",
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
    "PromptScored",
    "RawText",
    "ReasoningDelta",
    "Regex",
    "Restored",
    "Sampling",
    "ScoredToken",
    "SessionCacheOptions",
    "SessionInfo",
    "Speculation",
    "Started",
    "TextDelta",
    "Timings",
    "TokenIds",
    "TokensScored",
    "Tool",
    "ToolCall",
    "Usage",
    "__version__",
    "fold",
]
