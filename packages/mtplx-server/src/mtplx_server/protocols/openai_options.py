"""Options that only Chat Completions and Completions have, and what becomes of the rest."""

from mtplx_client.wire.options import GenerationOptions
from mtplx_engine.errors import InvalidRequest
from mtplx_server.protocols.fields import Field

MAX_CHOICES = 128

# Of both surfaces.
OTHER_FIELDS = (
    Field("metadata", "harmless", "Labels; a `session_id` or `chat_id` names the conversation."),
    Field("prompt_cache_key", "harmless", "Names the conversation for the session cache."),
    Field("prompt_cache_options", "harmless", "What was computed is kept anyway."),
    Field("prompt_cache_retention", "harmless", "What was computed is kept while there is room."),
    Field("safety_identifier", "harmless", "Names an end user."),
    Field("service_tier", "harmless", "There is one tier."),
    Field("user", "harmless", "Names the conversation where nothing else does."),
    Field("store", "ignored", "Nothing is stored.", (False,)),
)


def stop(options: GenerationOptions) -> tuple[str, ...]:
    """Strings that end an answer."""
    return (options.stop,) if isinstance(options.stop, str) else tuple(options.stop or ())


def choices(options: GenerationOptions) -> int:
    """How many answers are wanted.

    Raises:
        InvalidRequest: None, or too many.
    """
    n = 1 if options.n is None else options.n
    if not 1 <= n <= MAX_CHOICES:
        raise InvalidRequest(f"n must be in [1, {MAX_CHOICES}]; got {n}.", "n")
    return n


def include_usage(options: GenerationOptions) -> bool:
    """Whether a stream ends with token counts."""
    return bool(options.stream_options and options.stream_options.include_usage)
