"""Models on the Hugging Face hub, through its own client and cache."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError
    GatedRepoError,
    HTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from tqdm import tqdm  # type: ignore[import-untyped]

from mtplx_engine.errors import Cancelled, ModelNotFound
from mtplx_engine.info import LoadProgress, OnLoadProgress

_WANTED = [
    "*.json",
    "*.jinja",
    "model*.safetensors",
    "mtp*.safetensors",
    "mtp/*.safetensors",
    "tokenizer.model",
    "*.tiktoken",
    "merges.txt",
    "vocab.txt",
]


def fetch_snapshot(hub_id: str, on_progress: OnLoadProgress) -> Path:
    """The folder of a model on the hub, downloaded where it is not in the cache yet.

    Args:
        hub_id: `org/name`.
        on_progress: Called from threads of the hub's client, one at a time.

    Raises:
        ModelNotFound: The hub does not have it, or cannot be reached.
    """
    try:
        return _download(hub_id, on_progress)
    except GatedRepoError as error:
        raise ModelNotFound(
            f"{hub_id} is gated: accept its terms at https://huggingface.co/{hub_id} and run"
            " `hf auth login`."
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelNotFound(
            f"{hub_id!r} is neither a folder here nor a model on the Hugging Face hub. Check the"
            " spelling; a private model needs `hf auth login`."
        ) from error
    except LocalEntryNotFoundError as error:
        raise ModelNotFound(
            f"{hub_id!r} is neither a folder here nor in the Hugging Face cache, and the hub"
            f" cannot be reached ({_reason(error)}). Go online and try again, or name a model"
            " folder."
        ) from error
    except (OSError, HTTPError) as error:
        raise ModelNotFound(f"{hub_id} could not be downloaded: {_reason(error)}") from error


def cached_snapshot(hub_id: str) -> Path | None:
    """The folder of a model in the hub's cache, or None. Does not use the network."""
    try:
        return Path(
            huggingface_hub.snapshot_download(hub_id, allow_patterns=_WANTED, local_files_only=True)
        )
    except LocalEntryNotFoundError:
        return None


def _download(hub_id: str, on_progress: OnLoadProgress) -> Path:
    """Download on a thread of its own, so that Ctrl-C takes effect at once.

    The client waits for its running transfers before it lets an interrupt through, and a shard
    can take an hour. Here they are told to give up instead; what is there is resumed next time.
    """
    given_up = threading.Event()
    outcome: Future[str] = Future()
    bar = _reporting_bar(hub_id, on_progress, given_up.is_set)

    def download() -> None:
        try:
            outcome.set_result(
                huggingface_hub.snapshot_download(hub_id, allow_patterns=_WANTED, tqdm_class=bar)
            )
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=download, name=f"fetch {hub_id}", daemon=True).start()
    try:
        return Path(outcome.result())
    finally:
        given_up.set()


def _reporting_bar(
    hub_id: str, on_progress: OnLoadProgress, given_up: Callable[[], bool]
) -> type[tqdm]:
    """A progress bar class that draws nothing and reports the bytes of the whole snapshot.

    The client makes several bars: one counts files, the others bytes, of which the one that is
    furthest along counts.
    """
    detail = f"fetching {hub_id} from the Hugging Face hub"
    lock = threading.Lock()
    furthest = 0

    class ReportingBar(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, unit: str = "it", **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True, "unit": unit})
            self._counts_bytes = unit == "B"

        def update(self, n: float | None = 1) -> None:
            nonlocal furthest
            if given_up():
                raise Cancelled(f"The download of {hub_id} was interrupted.")
            with lock:
                self.n += n or 0
                if self._counts_bytes and self.n > furthest:
                    furthest = int(self.n)
                    on_progress(LoadProgress("fetch", detail, furthest, int(self.total or 0)))

    return ReportingBar


def _reason(error: Exception) -> str:
    """The first line; the client adds advice for its own callers below."""
    first_line, _, _ = str(error).strip().partition("\n")
    return first_line or type(error).__name__
