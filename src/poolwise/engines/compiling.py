"""Kernels that must be compiled first: other processes do so, and meanwhile the Python code of a kernel makes the run."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from poolwise.engines.compile_lock import is_being_compiled

log = logging.getLogger(__name__)

Loader = Callable[[str], None]
"""Loads the kernel of a kind, compiling it where it must be: a function of a module."""

Kernel = Callable[[str, tuple[object, ...]], int]
"""Calls a kernel of a kind with its arrays; returns why it stopped."""

SHORT = 40_000
"""Jobs of a workload that Python code may be through with before a kernel is compiled."""
_beside: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
"""Kernels, by folder and kind, that other processes compile."""


def compile_beside(folder: str, kind: str, load: Loader) -> None:
    """Compile a kernel in another process that gives way to this one, unless one has or does; it goes on when this one ends."""
    from poolwise.kernels.jit import is_compiled

    if is_compiled(folder, kind) or (folder, kind) in _beside or is_being_compiled(folder, kind):
        return
    script = (
        f"import os; getattr(os, 'nice', int)(10); from {load.__module__} import {load.__name__}; {load.__name__}({kind!r})"
    )
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    quiet, words = subprocess.DEVNULL, [sys.executable, "-c", script]
    _beside[folder, kind] = subprocess.Popen(words, env=where, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def await_beside(folder: str, kind: str) -> None:
    """Wait for the process that this one began to compile a kernel in. Should that have failed, loading compiles it here."""
    if (folder, kind) in _beside:
        _beside.pop((folder, kind)).wait()


class InterimKernel:
    """A kernel that may be called before it is compiled: it goes on from the arrays as its Python code left them.

    Parameters
    ----------
    folder, load
        Its folder, and what loads the kernel of a kind.
    kernel
        Itself: arrays -> why it stopped.
    jobs
        Jobs of the workload. With more than `SHORT` of them, with one processor, or where other processes do not find what is
        compiled, a call waits until it is.

    Attributes
    ----------
    loading_s : seconds of the calls so far that went into loading and compiling
    """

    def __init__(self, folder: str, load: Loader, kernel: Callable[..., int], jobs: int) -> None:
        self._folder, self._load, self._kernel = folder, load, kernel
        self._waits = jobs > SHORT or not _has_two_processors()
        self._ready: set[str] = set()
        self._told: set[str] = set()
        self.loading_s = 0.0

    def __call__(self, kind: str, arrays: tuple[object, ...]) -> int:
        """Call the kernel, as machine code of a kind if that is there."""
        if kind in self._ready or self._is_ready(kind):
            return self._kernel(*arrays)
        from poolwise.kernels.python_code import python_code

        with np.errstate(all="ignore"):
            return int(python_code(self._kernel)(*arrays))

    def _is_ready(self, kind: str) -> bool:
        """Whether machine code of a kind is loaded, as it now is if it can be; else another process compiles it."""
        from poolwise.kernels.jit import is_compiled, is_kept

        if not (self._waits or is_compiled(self._folder, kind)) and is_kept(self._folder) and self._is_compiled_beside(kind):
            return False
        begun = time.perf_counter()
        self._load(kind)
        self._ready.add(kind)
        self.loading_s += time.perf_counter() - begun
        return True

    def _is_compiled_beside(self, kind: str) -> bool:
        """Whether another process compiles the kernel of a kind now: anyone's, or one that is begun here."""
        if (self._folder, kind) in _beside:
            return _beside[self._folder, kind].poll() is None
        if not is_being_compiled(self._folder, kind):
            log.warning("compiling kernels (%s) in the background, once for this version on this computer", kind)
            compile_beside(self._folder, kind, self._load)
        elif kind not in self._told:
            log.warning("another process compiles kernels (%s); this run goes on with them once they are there", kind)
        self._told.add(kind)
        return True


def _has_two_processors() -> bool:
    """Whether this process and another can compute at once."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) > 1
