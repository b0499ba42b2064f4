"""Puts settings into a user's file: whole or not at all, with a copy of what was there."""

import contextlib
import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from mtplx_cli.connecting.agent import CannotMerge, Format, Settings

_BOM = "\ufeff"
_BARE_LINE_FEED = re.compile(r"(?<!\r)\n")
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a file.

    Attributes:
        changed: False if it held the settings already.
        backup: The copy of what it held before, or None if there was nothing.
    """

    changed: bool
    backup: Path | None = None


def write_settings(path: Path, form: Format, settings: Settings) -> Written:
    """Make a file hold settings, besides what it holds.

    Raises:
        CannotMerge: The file cannot be changed without loss; it is as it was.
        OSError: It cannot be read or written; it is as it was.
    """
    # A link stays a link; what it leads to is replaced.
    target = Path(os.path.realpath(path))
    old = _read(path)
    new = _merged_like(old or "", form, settings)
    if new == old:
        return Written(changed=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft(target, new)
    try:
        backup = None if old is None else _second_name(target)
        _put_in_place(draft, target, backup)
    finally:
        draft.unlink(missing_ok=True)
    return Written(changed=True, backup=backup)


def _read(path: Path) -> str | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    # To open a device or a pipe may wait for ever, or do something.
    if not stat.S_ISREG(status.st_mode):
        raise CannotMerge("it is not a regular file")
    if not status.st_mode & _WRITABLE or not os.access(path, os.W_OK):
        raise CannotMerge("it is read-only")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise CannotMerge(f"it is not UTF-8: byte {error.start} is wrong") from None


def _merged_like(old: str, form: Format, settings: Settings) -> str:
    """Merge, and keep the mark at the beginning and the line ends of the file."""
    body = old.removeprefix(_BOM)
    new = form.merge(body, settings)
    if "\n" in body and not _BARE_LINE_FEED.search(body):
        new = _BARE_LINE_FEED.sub("\r\n", new)
    return old[: len(old) - len(body)] + new


def _draft(target: Path, text: str) -> Path:
    """Write the text, through to the disk, into a file beside its place, which is private."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    draft = Path(name)
    try:
        with open(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        draft.unlink()
        raise
    return draft


def _second_name(target: Path) -> Path:
    """Give the file another name beside its own, which nothing has; so no moment is without it."""
    for number in count(1):
        backup = target.with_name(f"{target.name}.before-mtplx-{number}")
        with contextlib.suppress(FileExistsError):
            backup.hardlink_to(target)
            return backup
    raise AssertionError("numbers do not end")


def _put_in_place(draft: Path, target: Path, backup: Path | None) -> None:
    try:
        if backup:
            shutil.copymode(backup, draft)
        draft.replace(target)
    except BaseException:
        if backup:
            backup.unlink()
        raise
