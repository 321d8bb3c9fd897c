"""Progress within running tasks: each process writes the progress of its task to a file, which the caller reads.

Only processes of this computer report; the workers of a cluster do not see the folder.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from poolwise.engines.progress import Obstacle, ProgressListener, RunClock

STALE_S = 2.0
"""Age (s) above which the time since a report is counted too: a pass, or the evaluation after the run, may take long."""


class Running(NamedTuple):
    """Progress of a running task: completed share, seconds so far, and estimated seconds left."""

    share: float
    seconds: float
    left: float


class _TaskFile(ProgressListener):
    """Writes the progress of a task to a file."""

    def __init__(self, file: Path) -> None:
        self._file, self._clock = file, RunClock()

    def begin(self, obstacle: Obstacle | None) -> None:
        self._clock = RunClock()

    def advance(self, share: float, seconds: float) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{share} {seconds} {self._clock.left(share, seconds)}")
        draft.replace(self._file)


_folder = ContextVar[Path | None]("_folder", default=None)
_listener = ContextVar[ProgressListener | None]("_listener", default=None)


@contextmanager
def folder_of_progress() -> Iterator[Path]:
    """Create the folder to which tasks of this process and its workers report, for the duration of a context."""
    with TemporaryDirectory(prefix="poolwise-") as folder, reporting_to(Path(folder)):
        yield Path(folder)


@contextmanager
def reporting_to(folder: Path | None) -> Iterator[None]:
    """Let tasks of this process report to a folder, for the duration of a context."""
    before = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(before)


def reported_folder() -> Path | None:
    """Return the folder to which tasks of this process report."""
    return _folder.get()


def listener() -> ProgressListener | None:
    """Return the listener for the progress of the running task; None if no process reads it."""
    return _listener.get()


@contextmanager
def task_progress(key: str) -> Iterator[None]:
    """Report the progress of the task with this key, for the duration of a context."""
    folder = _folder.get()
    if folder is None:
        yield
        return
    before = _listener.set(_TaskFile(folder / key))
    try:
        yield
    finally:
        _listener.reset(before)
        (folder / key).unlink(missing_ok=True)


def read_running(folder: Path) -> list[Running]:
    """Return the progress of all running tasks that have reported."""
    return [progress for file in folder.iterdir() if not file.suffix if (progress := _read(file)) is not None]


def _read(file: Path) -> Running | None:
    try:
        share, seconds, left = map(float, file.read_text().split())
        age = time.time() - file.stat().st_mtime
    except FileNotFoundError:  # the task has finished
        return None
    if age < STALE_S:
        return Running(share, seconds, left)
    return Running(share, seconds + age, left - age if left > age else math.inf)
