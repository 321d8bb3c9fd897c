"""Background compilation of kernels: another process compiles them, and meanwhile their Python code makes progress."""

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
"""Loads the kernel of a kind, compiling it if necessary: a module-level function."""

Kernel = Callable[[str, tuple[object, ...]], int]
"""Calls a kernel of a kind with its arrays; returns the kernel's return value."""

SHORT = 40_000
"""Maximum number of jobs for which Python code may finish before a kernel is compiled."""
_background: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
"""Background compilations of this process, by folder and kind."""


def compile_in_background(folder: str, kind: str, load: Loader) -> None:
    """Compile a kernel, unless it is compiled already, in a low-priority background process that outlives this one."""
    from poolwise.kernels.jit import is_compiled

    if is_compiled(folder, kind) or (folder, kind) in _background or is_being_compiled(folder, kind):
        return
    script = (
        f"import os; getattr(os, 'nice', int)(10); from {load.__module__} import {load.__name__}; {load.__name__}({kind!r})"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    null, command = subprocess.DEVNULL, [sys.executable, "-c", script]
    _background[folder, kind] = subprocess.Popen(
        command, env=environment, stdin=null, stdout=null, stderr=null, start_new_session=True
    )


def wait_for_background(folder: str, kind: str) -> None:
    """Wait until the background process that this process started for a kernel ends. If it failed, loading compiles."""
    if (folder, kind) in _background:
        _background.pop((folder, kind)).wait()


class InterimKernel:
    """A kernel that can be called before it is compiled: Python code runs first, then machine code on the same arrays.

    Parameters
    ----------
    folder, load
        Folder of the kernel package, and the function that loads the kernel of a kind.
    kernel
        Function of arrays that returns why it stopped.
    jobs
        Jobs of the workload. With more than `SHORT` of them, with one processor, or if the cache is not shared with other
        processes, a call waits until the kernel is compiled.

    Attributes
    ----------
    loading_s : seconds spent on loading and compiling in the calls so far
    """

    def __init__(self, folder: str, load: Loader, kernel: Callable[..., int], jobs: int) -> None:
        self._folder, self._load, self._kernel = folder, load, kernel
        self._waits = jobs > SHORT or not _has_two_processors()
        self._ready: set[str] = set()
        self._reported: set[str] = set()
        self.loading_s = 0.0

    def __call__(self, kind: str, arrays: tuple[object, ...]) -> int:
        """Run the compiled kernel of a kind if it is loaded, else its Python code."""
        if kind in self._ready or self._is_ready(kind):
            return self._kernel(*arrays)
        from poolwise.kernels.python_code import python_code

        with np.errstate(all="ignore"):
            return int(python_code(self._kernel)(*arrays))

    def _is_ready(self, kind: str) -> bool:
        """Load the compiled kernel of a kind if possible, else let another process compile it; return whether it is loaded."""
        from poolwise.kernels.jit import is_compiled, is_persistent

        if (
            not (self._waits or is_compiled(self._folder, kind))
            and is_persistent(self._folder)
            and self._is_compiled_elsewhere(kind)
        ):
            return False
        begun = time.perf_counter()
        self._load(kind)
        self._ready.add(kind)
        self.loading_s += time.perf_counter() - begun
        return True

    def _is_compiled_elsewhere(self, kind: str) -> bool:
        """Return whether another process is compiling the kernel of a kind; start one if none is."""
        if (self._folder, kind) in _background:
            return _background[self._folder, kind].poll() is None
        if not is_being_compiled(self._folder, kind):
            log.warning("compiling kernels (%s) in the background, once for this version on this computer", kind)
            compile_in_background(self._folder, kind, self._load)
        elif kind not in self._reported:
            log.warning("another process is compiling kernels (%s); this run switches to them once they are ready", kind)
        self._reported.add(kind)
        return True


def _has_two_processors() -> bool:
    """Return whether this process can use more than one processor."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) > 1
