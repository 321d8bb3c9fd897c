"""Lock of a state directory, so that one daemon uses it at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from poolwise.errors import InputError


@contextmanager
def exclusive_lock(folder: Path, who: str) -> Iterator[None]:
    """Lock a folder; raise InputError if another process of the kind `who` holds the lock."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another {who} is using this folder", file=folder, remedy="stop it, or name another folder as 'state'"
            ) from None
        yield
    finally:
        os.close(handle)
