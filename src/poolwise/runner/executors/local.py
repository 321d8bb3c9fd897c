"""Executor on local cores: joblib processes, started once and reused by later tasks."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import TypeVar

from joblib import Parallel, delayed  # type: ignore[import-untyped]  # joblib ships no types
from joblib.externals.loky.process_executor import TerminatedWorkerError  # type: ignore[import-untyped]

from poolwise.errors import InputError, PoolwiseError
from poolwise.runner.execution import Executor, Finished, FinishedTask, grouped, run_tasks
from poolwise.runner.running import reported_folder, reporting_to
from poolwise.runner.task_type import TaskType

Task = TypeVar("Task")

DEATHS = 5
"""Maximum number of consecutive process deaths without a finished task."""


def checked_jobs(jobs: int | None) -> int | None:
    """Return the number of processes unchanged; raises InputError unless it is positive, -1 or None (all cores)."""
    if jobs is not None and jobs < 1 and jobs != -1:
        raise InputError(f"jobs must be at least 1, got {jobs}", field="--jobs", remedy="give 1 or more, or -1 for all cores")
    return jobs


@dataclass(frozen=True)
class Local(Executor):
    """Runs tasks in local processes, on all cores if `jobs` is None or -1; with one process, in the calling process."""

    jobs: int | None = None

    def __post_init__(self) -> None:
        checked_jobs(self.jobs)

    def results(self, task_type: TaskType[Task], tasks: Mapping[str, Task]) -> Generator[FinishedTask, None, None]:
        """Yield tasks as they finish; see `Executor`. Raises PoolwiseError if processes die repeatedly."""
        cores = self.jobs if self.jobs is not None and self.jobs > 0 else os.cpu_count() or 1
        groups = grouped(task_type, tasks)
        processes = min(cores, len(groups), len(tasks) // task_type.min_tasks_per_process)
        if processes <= 1:
            for group in groups:
                yield from run_tasks(task_type, group)
            return
        left, deaths = dict(tasks), 0
        while left:
            try:
                for done in _in_processes(task_type, grouped(task_type, left), processes):
                    del left[done.key]
                    deaths = 0
                    yield done
            except TerminatedWorkerError as error:
                deaths += 1
                if deaths == DEATHS:
                    problem = f"the processes died {DEATHS} times in a row, probably because memory ran out"
                    raise PoolwiseError(f"{problem}; try fewer with --jobs") from error


def _in_processes(
    task_type: TaskType[Task], groups: Sequence[Mapping[str, Task]], processes: int
) -> Generator[FinishedTask, None, None]:
    """Yield tasks as they finish. Workers only compute, and the caller writes, so a killed run cannot leave a second writer."""
    # joblib replaces a worker whose memory grew and warns in the thread that assigns tasks; where warnings are errors, the
    # thread would end and the run would wait forever.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    workers = Parallel(n_jobs=processes, backend="loky", return_as="generator_unordered", batch_size=1, max_nbytes=None)
    outputs: Generator[Finished, None, None] = workers(
        delayed(_in_worker)(task_type, group, os.getpid(), reported_folder()) for group in groups
    )
    try:
        for finished in outputs:
            yield from finished
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns about cancelled tasks, which are intended here
            outputs.close()


def _in_worker(task_type: TaskType[Task], tasks: Mapping[str, Task], parent: int, folder: Path | None) -> Finished:
    exit_with_parent(parent)
    with reporting_to(folder):
        return list(run_tasks(task_type, tasks))


@lru_cache(maxsize=1)
def exit_with_parent(parent: int) -> None:
    """Exit this worker when its parent process is gone; otherwise it would stay idle for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
