"""The cores of this computer: processes of joblib, which are started once and kept for the next trials."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Thread
from typing import TypeVar

from joblib import Parallel, delayed  # type: ignore[import-untyped]  # joblib ships no types
from joblib.externals.loky.process_executor import TerminatedWorkerError  # type: ignore[import-untyped]

from poolwise.errors import InputError, PoolwiseError
from poolwise.runner.execution import FinishedTask, run_trial
from poolwise.runner.executors.executor import Executor
from poolwise.runner.task_type import TaskType

Trial = TypeVar("Trial")

DEATHS = 5
"""Times that processes may die with no trial done between before it is given up."""


def checked_jobs(jobs: int | None) -> int | None:
    """Return a number of processes as it was given; raises InputError unless it is 1 or more, -1 or None (all cores)."""
    if jobs is not None and jobs < 1 and jobs != -1:
        raise InputError(f"{jobs} processes cannot run anything", field="--jobs", remedy="give 1 or more, or -1 for all cores")
    return jobs


@dataclass(frozen=True)
class Local(Executor):
    """Processes on this computer; all cores if `jobs` is not given or -1. One process is this one."""

    jobs: int | None = None

    def __post_init__(self) -> None:
        checked_jobs(self.jobs)

    def results(
        self, bench: TaskType[Trial], trials: Mapping[str, Trial], worth: int = 1
    ) -> Generator[FinishedTask, None, None]:
        """See `Executor`; raises PoolwiseError if processes die again and again."""
        cores = self.jobs if self.jobs is not None and self.jobs > 0 else os.cpu_count() or 1
        processes = min(cores, len(trials) // worth)
        if processes <= 1:
            yield from (run_trial(bench, key, trial) for key, trial in trials.items())
            return
        left, deaths = dict(trials), 0
        while left:
            try:
                for done in _in_processes(bench, left, processes):
                    del left[done.key]
                    deaths = 0
                    yield done
            except TerminatedWorkerError as error:
                deaths += 1
                if deaths == DEATHS:
                    problem = f"the processes died {DEATHS} times in a row, which is what happens when memory runs out"
                    raise PoolwiseError(f"{problem}; try fewer with --jobs") from error


def _in_processes(bench: TaskType[Trial], trials: Mapping[str, Trial], processes: int) -> Generator[FinishedTask, None, None]:
    """Trials as they finish. Workers only compute: one process writes, so a killed run cannot leave a second writer."""
    workers = Parallel(n_jobs=processes, backend="loky", return_as="generator_unordered", batch_size=1, max_nbytes=None)
    outputs: Generator[FinishedTask, None, None] = workers(
        delayed(_in_worker)(bench, key, trial, os.getpid()) for key, trial in [*trials.items()]
    )
    try:
        yield from (done for done in outputs)  # not `outputs` itself: closing this must not close it before the warning is off
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of trials given up, which is what stopping early means
            outputs.close()


def _in_worker(bench: TaskType[Trial], key: str, trial: Trial, parent: int) -> FinishedTask:
    live_with(parent)
    return run_trial(bench, key, trial)


@lru_cache(maxsize=1)
def live_with(parent: int) -> None:
    """End this worker when the process that started it is gone: nobody takes its work, and it would idle for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
