"""From what a person calls a model to a folder on this machine."""

import re
from dataclasses import dataclass
from pathlib import Path

from mtplx_engine.errors import ModelInvalid, ModelNotFound
from mtplx_engine.info import OnLoadProgress
from mtplx_engine.models import embedded, hub

_LONGEST_HUB_ID = 96  # the hub's rule, like that against -- and ..
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class Located:
    """A model that is on this machine.

    Attributes:
        folder: Where its files are.
        id: The name that requests and listings use.
        why: Why this model, in a clause for the banner.
        head: An MTP head outside the folder that was trained for this model.
    """

    folder: Path
    id: str
    why: str
    head: Path | None = None


def locate(reference: str | None, *, on_progress: OnLoadProgress) -> Located:
    """Find a model, downloading it where it is not on this machine.

    Args:
        reference: A folder, the embedded default's name, or an id on the Hugging Face hub; None
            takes the embedded default.
        on_progress: Told about downloads; it may be called from other threads, one at a time.

    Raises:
        ModelNotFound: There is nothing of that name, or it cannot be fetched.
        ModelInvalid: It is there but is not a model folder.
    """
    there = _on_disk(reference)
    if there is not None:
        return there
    if reference is None or reference == embedded.NAME:
        folder = embedded.ensure(embedded.home(), on_progress=on_progress)
        return _embedded(reference, folder)
    _require_hub_id(reference)
    return _from_hub(reference, hub.fetch_snapshot(reference, on_progress))


def locate_cached(reference: str | None) -> Located:
    """Find a model without using the network.

    Raises:
        ModelNotFound: It is not on this machine; the message says how to get it.
        ModelInvalid: It is there but is not a model folder.
    """
    there = _on_disk(reference)
    if there is not None:
        return there
    if reference is None or reference == embedded.NAME:
        cached = embedded.cached(embedded.home())
        if cached is None:
            raise ModelNotFound(
                f"{embedded.NAME} has not been fetched yet; `mtplx serve` fetches it."
            )
        return _embedded(reference, cached)
    _require_hub_id(reference)
    snapshot = hub.cached_snapshot(reference)
    if snapshot is None:
        raise ModelNotFound(
            f"{reference!r} is neither a folder here nor in the Hugging Face cache;"
            f" `mtplx serve {reference}` downloads it."
        )
    return _from_hub(reference, snapshot)


def _on_disk(reference: str | None) -> Located | None:
    """The folder that `reference` is the path of, if there is one."""
    if reference is None:
        return None
    try:
        path = Path(reference).expanduser()
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelNotFound(f"{reference!r} is no path or model name: {error}") from error
    if is_file:
        raise ModelInvalid(f"{path} is a file; a model is a folder that holds config.json.")
    if not is_folder:
        return None
    folder = path.resolve()
    _require_config(folder)
    return Located(folder, folder.name, "the folder that was named", embedded.head_for(folder))


def _embedded(reference: str | None, folder: Path) -> Located:
    why = "the embedded default, "
    why += "because no model was named" if reference is None else "which was named"
    return Located(folder, embedded.NAME, why, embedded.head_for(folder))


def _from_hub(hub_id: str, folder: Path) -> Located:
    _require_config(folder)
    return Located(folder, hub_id, "the Hugging Face model that was named")


def _require_config(folder: Path) -> None:
    config = folder / "config.json"
    if not config.is_file():
        raise ModelInvalid(f"{config} is missing, so {folder} is not a model folder.")


def _require_hub_id(reference: str) -> None:
    allowed = len(reference) <= _LONGEST_HUB_ID and "--" not in reference and ".." not in reference
    if allowed and _HUB_ID.fullmatch(reference):
        return
    if "/" in reference or "\\" in reference or reference.startswith(("~", ".")):
        raise ModelNotFound(f"There is no folder {str(Path(reference).expanduser())!r}.")
    raise ModelNotFound(
        f"{reference!r} is neither a folder here nor a hub id of the form org/name. The embedded"
        f" default is named {embedded.NAME}."
    )
