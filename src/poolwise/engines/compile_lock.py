"""Of several processes that need a kernel one compiles it; the others wait for that, or go on without it.

Who compiles holds a lock (flock) on a file in the folder of the kernel's family. The system drops it when the process ends, in
whatever way it ends. Where files cannot be locked, each process compiles for itself, which does no harm.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def sole_compiler(family: str, kind: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Keep others from compiling kernels of a kind; `on_wait` is called if one does so now, before its end is awaited."""
    with _lock_file(family, kind) as file:
        if not _locks(file, exclusive=True, waits=False):
            on_wait()
            _locks(file, exclusive=True, waits=True)
        yield


def is_being_compiled(family: str, kind: str) -> bool:
    """Whether a process compiles kernels of a kind now."""
    with _lock_file(family, kind) as file:
        return not _locks(file, exclusive=False, waits=False)


@contextmanager
def _lock_file(family: str, kind: str) -> Iterator[int]:
    """Descriptor of the file that stands for kernels of a kind. Closing it gives the lock up."""
    from poolwise.kernels.jit import folder

    file = os.open(folder(family) / f"{kind.replace(' ', '-')}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield file
    finally:
        os.close(file)


def _locks(file: int, *, exclusive: bool, waits: bool) -> bool:
    """Lock a file if files can be locked here; False if another process holds a lock on it that excludes this."""
    try:
        import fcntl

        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True
