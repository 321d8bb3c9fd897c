"""One process at a time: a folder that its daemon holds."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from poolwise.errors import InputError


@contextmanager
def alone(folder: Path, who: str) -> Iterator[None]:
    """Hold a folder; raises InputError where another process of that kind does."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another {who} works here", file=folder, remedy="stop it, or name another folder as 'state'"
            ) from None
        yield
    finally:
        os.close(handle)
