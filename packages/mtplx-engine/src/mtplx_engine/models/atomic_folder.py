"""A folder that is either not there or complete, whatever happens while it is made.

It is built under another name beside its place, written through to the disk, and renamed. One
process at a time builds, under a lock that the system releases when the process dies; so what a
killed process left behind can be told from what a live one is making, and is removed.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def ensure_folder(
    target: Path,
    build: Callable[[Path], None],
    *,
    is_current: Callable[[Path], bool],
    on_wait: Callable[[], None],
) -> None:
    """Build `target` unless it is there and current.

    Args:
        target: Where the folder shall be; its parent is created.
        build: Fills the empty folder that it is given.
        is_current: Whether an existing folder can stay.
        on_wait: Called when another process is building and this one has to wait.

    Raises:
        OSError: The disk is full, read-only or the like. Nothing is left behind.
    """
    if is_current(target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(target.parent / f".{target.name}.lock", on_wait):
        _remove_leftovers(target)
        if is_current(target):
            return
        staging = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.new-"))
        try:
            build(staging)
            staging.chmod(0o755)  # mkdtemp makes it private, but a model is not a secret
            _write_through(staging)
            _put_in_place(staging, target)
        finally:
            _remove_leftovers(target)


@contextmanager
def exclusive_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock. The file stays: removing it would let two holders in.

    `on_wait` is called when another process holds it; unless it raises, this one waits.
    """
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _put_in_place(staging: Path, target: Path) -> None:
    if target.exists():
        # A folder cannot be renamed over a full one. A crash between the two renames costs a
        # rebuild, never a mixture.
        target.rename(staging.with_name(f".{target.name}.old-{os.getpid()}"))
    staging.rename(target)
    _sync(target.parent)


def _remove_leftovers(target: Path) -> None:
    """Remove unfinished and outdated folders; only the holder of the lock may."""
    for kind in ("new", "old"):
        for leftover in target.parent.glob(f".{target.name}.{kind}-*"):
            shutil.rmtree(leftover)


def _write_through(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
