"""Lock that ensures that only one process compiles a kernel; other processes wait for it or run interpreted meanwhile.

The compiling process holds a lock (flock) on a file in the cache folder of the kernel package. The operating system releases it
when the process ends, for whatever reason. On file systems without locks, each process compiles for itself, which is harmless.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def compile_lock(package: str, kind: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the compile lock of one kind of kernel; `on_wait` is called first if another process holds it."""
    with _lock_file(package, kind) as file:
        if not _locks(file, exclusive=True, waits=False):
            on_wait()
            _locks(file, exclusive=True, waits=True)
        yield


def is_being_compiled(package: str, kind: str) -> bool:
    """Return whether some process is compiling kernels of a kind."""
    with _lock_file(package, kind) as file:
        return not _locks(file, exclusive=False, waits=False)


@contextmanager
def _lock_file(package: str, kind: str) -> Iterator[int]:
    """Yield the descriptor of the lock file for kernels of a kind. Closing it releases the lock."""
    from poolwise.kernels.jit import cache_folder

    file = os.open(cache_folder(package) / f"{kind.replace(' ', '-')}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield file
    finally:
        os.close(file)


def _locks(file: int, *, exclusive: bool, waits: bool) -> bool:
    """Lock a file if the file system supports it; return False if another process holds a conflicting lock."""
    try:
        import fcntl

        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True
