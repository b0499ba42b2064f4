"""Files that are either the old ones or the whole new ones, whatever happens meanwhile."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mtplx_engine.errors import ModelError
from mtplx_engine.models.config import one_line


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a place to write to, beside `path`; in the end it is renamed to `path`.

    Raises:
        ModelError: It cannot be written.
    """
    # MLX insists on the suffix.
    staging = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        yield staging
        with staging.open("rb") as file:
            os.fsync(file.fileno())
        staging.replace(path)
    except OSError as error:
        raise ModelError(f"{path} cannot be written: {error.strerror}.") from error
    except RuntimeError as error:  # MLX's word for a full disk and all else
        raise ModelError(f"{path} cannot be written: {one_line(error)}.") from error
    finally:
        staging.unlink(missing_ok=True)
