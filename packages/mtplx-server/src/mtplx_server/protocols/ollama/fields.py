"""The fields that are not honoured, and what becomes of them."""

from mtplx_client.wire.ollama import OllamaChatRequest, OllamaGenerateRequest, OllamaOptions
from mtplx_server.protocols.fields import Field, FieldTable

_LOADING = "The model was loaded when the server started."
_NO_SHIFT = "A prompt that does not fit is a 400."
_TEXT_ONLY = "Text only."

_BOTH = (
    Field("keep_alive", "harmless", "The model stays loaded."),
    Field("truncate", "ignored", _NO_SHIFT, (False,)),
    Field("shift", "ignored", _NO_SHIFT, (False,)),
)
CHAT = FieldTable(OllamaChatRequest, _BOTH)
GENERATE = FieldTable(
    OllamaGenerateRequest,
    (
        *_BOTH,
        Field("suffix", "refused", "Only what comes before can be read.", ("",)),
        Field("template", "refused", "The model brings its own; send raw.", ("",)),
        Field("context", "refused", "Send the conversation to /api/chat.", ([],)),
        Field("images", "refused", _TEXT_ONLY, ([],)),
        Field("width", "refused", _TEXT_ONLY, (0,)),
        Field("height", "refused", _TEXT_ONLY, (0,)),
        Field("steps", "refused", _TEXT_ONLY, (0,)),
    ),
)
OPTIONS = FieldTable(
    OllamaOptions,
    (
        Field("typical_p", "ignored", "There is no such filter.", (1.0,)),
        Field("tfs_z", "ignored", "There is no such filter.", (1.0,)),
        Field("mirostat", "ignored", "There is no such filter.", (0,)),
        Field("mirostat_tau", "ignored", "There is no mirostat.", (5.0,)),
        Field("mirostat_eta", "ignored", "There is no mirostat.", (0.1,)),
        Field("penalize_newline", "ignored", "Line feeds are tokens like others.", (True,)),
        Field("num_keep", "harmless", "Nothing is cut out of a prompt."),
        Field("num_batch", "ignored", _LOADING, (512,)),
        Field("num_gpu", "ignored", _LOADING, (-1,)),
        Field("main_gpu", "ignored", _LOADING, (0,)),
        Field("num_thread", "ignored", _LOADING, (0,)),
        Field("numa", "ignored", _LOADING, (False,)),
        Field("low_vram", "ignored", _LOADING, (False,)),
        Field("f16_kv", "ignored", _LOADING, (True,)),
        Field("logits_all", "ignored", _LOADING, (False,)),
        Field("vocab_only", "ignored", _LOADING, (False,)),
        Field("use_mmap", "ignored", _LOADING, (True,)),
        Field("use_mlock", "ignored", _LOADING, (False,)),
        Field("embedding_only", "ignored", _LOADING, (False,)),
    ),
)
