"""Making the session cache of a model that has just been loaded."""

from mtplx_engine.caching import SessionCacheOptions
from mtplx_engine.models.loaded import LoadedModel
from mtplx_engine.runtime.bank import SessionBank
from mtplx_engine.runtime.memory import available_bytes

_LARGEST = 48 * 2**30  # bytes that are taken unasked
_UNKNOWN = 2**30  # bytes where nothing says what is free


def open_bank(model: LoadedModel, options: SessionCacheOptions) -> SessionBank:
    """A session cache, empty in memory.

    Args:
        model: Whose weights are loaded already, so that what is free is free for the rest.
        options: How much is kept.
    """
    return SessionBank(model, _limit(options))


def _limit(options: SessionCacheOptions) -> int:
    if options.ram is not None:
        return options.ram
    available = available_bytes()
    return _UNKNOWN if available is None else min(available // 2, _LARGEST)
