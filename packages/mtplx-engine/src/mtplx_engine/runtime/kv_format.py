"""In which format the keys and values of a request are kept."""

from mtplx_engine.caching import KVFormat, KVQuant, KVSetting
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.info import ModelInfo

_BITS: dict[KVSetting, int] = {"off": 0, "q8": 8, "q4": 4}


def kv_format(
    asked: KVQuant | None, setting: KVSetting, info: ModelInfo, prompt_tokens: int
) -> KVFormat | None:
    """Decide it, once and for the whole sequence.

    Args:
        asked: What the request says.
        setting: The engine's, for what the request leaves open.
        info: What the model can do.
        prompt_tokens: Length of the prompt.

    Raises:
        InvalidRequest: The model cannot do what is asked, whatever the length of the prompt.
    """
    asked = asked or KVQuant()
    bits = _BITS[setting] if asked.bits is None else asked.bits
    if bits <= 0:
        return None
    if not info.kv_groups:
        text = f"kv_bits {bits} is not possible: keys and values of this model cannot be quantised,"
        raise InvalidRequest(f"{text} because {info.kv_obstacle}.", "kv_bits")
    group_size = info.kv_groups[0] if asked.group_size is None else asked.group_size
    if group_size not in info.kv_groups:
        known = ", ".join(map(str, sorted(info.kv_groups)))
        text = f"kv_group_size {group_size} does not divide the heads of this model; use {known}."
        raise InvalidRequest(text, "kv_group_size")
    return KVFormat(bits, group_size) if prompt_tokens >= (asked.start or 0) else None
