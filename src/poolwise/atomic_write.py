"""Atomic file writes."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from poolwise.errors import InputError


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file atomically: write a temporary file in the same folder, flush it to disk, rename it.

    After a crash, the path contains either the old or the new content. Pass content that exceeds memory as an iterable of
    parts. Raises InputError with the path if it cannot be written, for example on a full disk.
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
        problem = f"cannot write the file: {error.strerror or error}"
        raise InputError(problem, file=path, remedy=remedy) from error


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error codes for exhausted space."""


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that a rename survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_writable(path: Path) -> None:
    """Raise InputError if an output path cannot be written; call it before computing the output."""
    if path.is_dir():
        raise InputError("is a folder, not a file", file=path, remedy="give the path of a file")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(
            "the folder does not exist or is not writable", file=path.parent, remedy="create it or choose another folder"
        )
