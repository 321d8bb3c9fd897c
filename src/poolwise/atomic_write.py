"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from poolwise.errors import InputError


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write beside the target, flush to disk, rename: a crash leaves the old file or the new one, never half of one.

    What does not fit into memory is given in parts.
    Raises InputError that names the path where it cannot be written, as on a full disk.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
            try:
                draft.writelines((content,) if isinstance(content, bytes) else content)
                draft.flush()
                os.fsync(draft.fileno())
                Path(draft.name).chmod(0o644)
                Path(draft.name).replace(path)
            except BaseException:
                Path(draft.name).unlink(missing_ok=True)
                raise
        sync_folder(path.parent)
    except OSError as error:
        remedy = "free some space or write elsewhere" if error.errno in _FULL else "check the path and its permissions"
        problem = f"cannot be written: {error.strerror or error}"
        raise InputError(problem, file=path, remedy=remedy) from error


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a system says where there is no room."""


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that a rename outlives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_writable(path: Path) -> None:
    """Refuse an output path before any work is done for it; raises InputError."""
    if path.is_dir():
        raise InputError("is a folder, not a file", file=path, remedy="name a file")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(
            "the folder does not exist or cannot be written", file=path.parent, remedy="create it or choose another"
        )
