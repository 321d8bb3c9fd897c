"""The waiting jobs, in the order (submit, id, name), with the counters that belong to waiting."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.model.job_table import Job, JobTable
from poolwise.units import SECOND


class Queue:
    """Jobs with tasks that wait. Schedulers read it; the loop alone changes it.

    Jobs stand in the order (submit, id, name) whatever happened and whatever their rows, so that the tie rule of every
    queue order (earlier submit, then lower id) is simply the order of the queue, and a requeued job returns to its old
    place.

    Attributes
    ----------
    table : the jobs that have arrived
    joined : how often a job has joined; as long as it stays the same, whoever waits has waited before
    """

    def __init__(self, table: JobTable) -> None:
        self.table, self.joined = table, 0
        self._rows: list[int] = []
        self._keys: list[tuple[int, int, str]] | None = []  # of the rows, ascending; None until someone looks for a place
        self._tasks: dict[int, list[int]] = {}
        self._passes: dict[int, int] = {}
        self._pass = 0
        self._jobs: IntArray | None = None

    @classmethod
    def of(cls, table: JobTable, jobs: IntArray) -> Queue:
        """Return a queue of some jobs, (k,) rows of the job table, with all their tasks; faster than adding one by one."""
        queue = cls(table)
        names = [table.name(row) for row in jobs.tolist()] if table.named else []
        keys = (*((np.array(names),) if names else ()), table.id[jobs], table.submit[jobs])
        rows = jobs[np.lexsort(keys)] if len(jobs) else jobs
        queue._rows, queue._keys = rows.tolist(), None
        queue._passes = dict.fromkeys(queue._rows, 0)
        return queue

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, job: int) -> bool:
        return job in self._passes

    @property
    def jobs(self) -> IntArray:
        """(n_queued,) rows of the job table, in the order (submit, id, name)."""
        if self._jobs is None:
            self._jobs = np.array(self._rows, dtype=np.int64)
            self._jobs.setflags(write=False)
        return self._jobs

    def tasks(self, job: int) -> tuple[int, ...]:
        """Waiting tasks of a job, ascending."""
        tasks = self._tasks.get(job)
        return tuple(range(int(self.table.tasks[job]))) if tasks is None else tuple(tasks)

    def waiting(self) -> IntArray:
        """(n_queued,) how many tasks of each job wait."""
        waiting = self.table.tasks[self.jobs]
        if self._tasks:
            place = {job: k for k, job in enumerate(self._rows)}
            for job, tasks in self._tasks.items():
                waiting[place[job]] = len(tasks)
        return waiting

    def job(self, job: int) -> Job:
        """View a job with those of its tasks that wait."""
        tasks = self._tasks.get(job)
        return Job(self.table, job, None if tasks is None else tuple(tasks))

    def waited_s(self, now: int) -> FloatArray:
        """(n_queued,) seconds since submission (specs, queue order: w)."""
        waited: FloatArray = (now - self.table.submit[self.jobs]) / SECOND
        return waited

    def passes(self) -> IntArray:
        """(n_queued,) scheduling passes that each job has seen without starting whole."""
        return np.array([self._pass - self._passes[job] for job in self._rows], dtype=np.int64)

    def only(self, jobs: IntArray) -> Queue:
        """Return a queue restricted to some of its jobs, (k,) rows of the job table; order and counters are kept."""
        stay = np.isin(self.jobs, jobs)
        part = Queue(self.table)
        part._rows, part._keys = self.jobs[stay].tolist(), None
        part._passes = {job: self._passes[job] for job in part._rows}
        part._tasks = {job: tasks for job, tasks in self._tasks.items() if job in part._passes}
        part._pass = self._pass
        return part

    # The loop's side.

    def add(self, job: int, tasks: tuple[int, ...] | None = None, passes: int = 0) -> None:
        """Add a job, or some of its tasks again; `passes` counts those it has waited before, in a run that is continued."""
        if job in self._passes:
            if tasks is not None and job in self._tasks:
                merged = sorted({*self._tasks[job], *tasks})
                self._tasks[job] = merged
                if len(merged) == int(self.table.tasks[job]):
                    del self._tasks[job]
            return
        self.joined += 1
        key = self.table.order_key(job)
        keys = self._places()
        where = bisect_left(keys, key)
        self._rows.insert(where, job)
        keys.insert(where, key)
        self._passes[job] = self._pass - passes
        if tasks is not None and len(tasks) < int(self.table.tasks[job]):
            self._tasks[job] = sorted(tasks)
        self._jobs = None

    def remove_tasks(self, job: int, tasks: tuple[int, ...] | None = None) -> None:
        """Remove a job, or the tasks of it that were started."""
        if tasks is not None and (job in self._tasks or len(tasks) < int(self.table.tasks[job])):
            rest = sorted(set(self.tasks(job)) - set(tasks))
            if rest:
                self._tasks[job] = rest
                return
        keys = self._places()
        where = bisect_left(keys, self.table.order_key(job))
        self._rows.pop(where)
        keys.pop(where)
        self._tasks.pop(job, None)
        del self._passes[job]
        self._jobs = None

    def _places(self) -> list[tuple[int, int, str]]:
        """Keys of the rows, by which a job's place is found."""
        if self._keys is None:
            self._keys = [self.table.order_key(job) for job in self._rows]
        return self._keys

    def count_pass(self) -> None:
        """Count one more pass for each waiting job."""
        self._pass += 1

    def renumber(self, rows: Mapping[int, int]) -> None:
        """Follow a job table whose rows were renumbered, old row -> new one; every waiting job has a new row."""
        self._rows = [rows[job] for job in self._rows]
        self._tasks = {rows[job]: tasks for job, tasks in self._tasks.items()}
        self._passes = {rows[job]: since for job, since in self._passes.items()}
        self._jobs = None
