"""The waiting jobs, in the order (submit, id), with the counters that belong to waiting."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.model.workload import Workload
from poolwise.units import SECOND


class Queue:
    """Jobs with tasks that wait. Schedulers read it; the loop alone changes it.

    Rows stand in the order (submit, id) whatever happened, so that the tie rule of every queue order (earlier submit,
    then lower id) is simply the row order, and a requeued job returns to its old place.
    """

    def __init__(self, table: Workload) -> None:
        self.table = table
        self._rows: list[int] = []
        self._tasks: dict[int, list[int]] = {}
        self._passes: dict[int, int] = {}
        self._pass = 0
        self._jobs: IntArray | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, job: int) -> bool:
        return job in self._passes

    @property
    def jobs(self) -> IntArray:
        """(n_queued,) rows of the workload, ascending, which is the order (submit, id)."""
        if self._jobs is None:
            self._jobs = np.array(self._rows, dtype=np.int64)
            self._jobs.setflags(write=False)
        return self._jobs

    def tasks(self, job: int) -> tuple[int, ...]:
        """Waiting tasks of a job, ascending."""
        tasks = self._tasks.get(job)
        return tuple(range(int(self.table.tasks[job]))) if tasks is None else tuple(tasks)

    def waited_s(self, now: int) -> FloatArray:
        """(n_queued,) seconds since submission (specs, queue order: w)."""
        waited: FloatArray = (now - self.table.submit[self.jobs]) / SECOND
        return waited

    def passes(self) -> IntArray:
        """(n_queued,) scheduling passes that each job has seen without starting whole."""
        return np.array([self._pass - self._passes[job] for job in self._rows], dtype=np.int64)

    def only(self, jobs: IntArray) -> Queue:
        """Return a queue restricted to some of its jobs, (k,) rows of the workload; counters are kept."""
        part = Queue(self.table)
        part._rows = sorted(set(jobs.tolist()) & self._passes.keys())
        part._tasks = {job: tasks for job, tasks in self._tasks.items() if job in set(part._rows)}
        part._passes = {job: self._passes[job] for job in part._rows}
        part._pass = self._pass
        return part

    # The loop's side.

    def add(self, job: int, tasks: tuple[int, ...] | None = None) -> None:
        """Let a job (or some of its tasks again) wait."""
        if job in self._passes:
            if tasks is not None and job in self._tasks:
                self._tasks[job] = sorted({*self._tasks[job], *tasks})
            return
        where = bisect_left(self._rows, job)
        self._rows.insert(where, job)
        self._passes[job] = self._pass
        if tasks is not None and len(tasks) < int(self.table.tasks[job]):
            self._tasks[job] = sorted(tasks)
        self._jobs = None

    def take(self, job: int, tasks: tuple[int, ...] | None = None) -> None:
        """Remove a job, or the tasks of it that were started."""
        if tasks is not None:
            rest = sorted(set(self.tasks(job)) - set(tasks))
            if rest:
                self._tasks[job] = rest
                return
        self._rows.pop(bisect_left(self._rows, job))
        self._tasks.pop(job, None)
        del self._passes[job]
        self._jobs = None

    def count_pass(self) -> None:
        """One more pass is over."""
        self._pass += 1
