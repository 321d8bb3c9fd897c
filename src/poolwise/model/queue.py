"""The queue: waiting jobs in the order (submit, id, name), and the number of passes that each has waited."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.model.job_table import Job, JobTable
from poolwise.quantities import SECOND


class Queue:
    """Jobs with waiting tasks. Schedulers read the queue; only the scheduling loop changes it.

    The order is always (submit, id, name), whatever the row numbers. It is therefore the tie rule of every queue order (earlier
    submission, then lower id), and a requeued job returns to its old position.

    Attributes
    ----------
    table : the jobs that have arrived
    joined : number of times that a job has joined; while it stays the same, no job in the queue is new

    Examples
    --------
    >>> import numpy as np, poolwise
    >>> workload = poolwise.Workload.of(["0 s", "1 min", "2 min"], "1 h")
    >>> queue = poolwise.Queue.of(workload.table, np.array([2, 1]))
    >>> queue.jobs
    array([1, 2])
    >>> queue.waited_s(now=180 * 10**9)
    array([120.,  60.])
    """

    def __init__(self, table: JobTable) -> None:
        self.table, self.joined = table, 0
        self._rows: list[int] = []
        self._keys: list[tuple[int, int, str]] | None = []  # of the rows, ascending; None until a position is looked up
        self._tasks: dict[int, list[int]] = {}
        self._passes: dict[int, int] = {}
        self._pass = 0
        self._jobs: IntArray | None = None

    @classmethod
    def of(cls, table: JobTable, jobs: IntArray) -> Queue:
        """Return a queue of some jobs, (k,) rows of the job table, with all their tasks; faster than adding them one by one."""
        queue = cls(table)
        names = [table.name(row) for row in jobs.tolist()] if table.named else []
        keys = (*((np.array(names),) if names else ()), table.id[jobs], table.submit[jobs])
        rows = jobs[np.lexsort(keys)] if len(jobs) else jobs
        queue._rows, queue._keys = rows.tolist(), None
        queue._passes = dict.fromkeys(queue._rows, 0)
        return queue

    def __repr__(self) -> str:
        return f"<Queue of {len(self):,} jobs>"

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
        """Return the waiting tasks of a job, ascending."""
        tasks = self._tasks.get(job)
        return tuple(range(int(self.table.tasks[job]))) if tasks is None else tuple(tasks)

    def waiting(self) -> IntArray:
        """Return the number of waiting tasks of each job, (n_queued,)."""
        waiting = self.table.tasks[self.jobs]
        if self._tasks:
            position = {job: k for k, job in enumerate(self._rows)}
            for job, tasks in self._tasks.items():
                waiting[position[job]] = len(tasks)
        return waiting

    def job(self, job: int) -> Job:
        """Return a view of a job with only its waiting tasks."""
        tasks = self._tasks.get(job)
        return Job(self.table, job, None if tasks is None else tuple(tasks))

    def waited_s(self, now: int) -> FloatArray:
        """Return the seconds since submission of each job, (n_queued,) (specs, queue order: w)."""
        waited: FloatArray = (now - self.table.submit[self.jobs]) / SECOND
        return waited

    def passes(self) -> IntArray:
        """Return the number of scheduling passes that each job has waited without starting all its tasks, (n_queued,)."""
        return np.array([self._pass - self._passes[job] for job in self._rows], dtype=np.int64)

    def only(self, jobs: IntArray) -> Queue:
        """Return a queue of only some of the jobs, (k,) rows of the job table; order and counters are kept."""
        stay = np.isin(self.jobs, jobs)
        part = Queue(self.table)
        part._rows, part._keys = self.jobs[stay].tolist(), None
        part._passes = {job: self._passes[job] for job in part._rows}
        part._tasks = {job: tasks for job, tasks in self._tasks.items() if job in part._passes}
        part._pass = self._pass
        return part

    # Used by the scheduling loop

    def add(self, job: int, tasks: tuple[int, ...] | None = None, passes: int = 0) -> None:
        """Add a job, or requeue some of its tasks; `passes` counts the passes that it waited before the run was continued."""
        if job in self._passes:
            if tasks is not None and job in self._tasks:
                merged = sorted({*self._tasks[job], *tasks})
                self._tasks[job] = merged
                if len(merged) == int(self.table.tasks[job]):
                    del self._tasks[job]
            return
        self.joined += 1
        key = self.table.order_key(job)
        keys = self._sorted_keys()
        position = bisect_left(keys, key)
        self._rows.insert(position, job)
        keys.insert(position, key)
        self._passes[job] = self._pass - passes
        if tasks is not None and len(tasks) < int(self.table.tasks[job]):
            self._tasks[job] = sorted(tasks)
        self._jobs = None

    def remove_tasks(self, job: int, tasks: tuple[int, ...] | None = None) -> None:
        """Remove the started tasks of a job, and the job itself once no task waits; by default all tasks."""
        if tasks is not None and (job in self._tasks or len(tasks) < int(self.table.tasks[job])):
            rest = sorted(set(self.tasks(job)) - set(tasks))
            if rest:
                self._tasks[job] = rest
                return
        keys = self._sorted_keys()
        position = bisect_left(keys, self.table.order_key(job))
        self._rows.pop(position)
        keys.pop(position)
        self._tasks.pop(job, None)
        del self._passes[job]
        self._jobs = None

    def _sorted_keys(self) -> list[tuple[int, int, str]]:
        """Return the sorted keys of the rows, in which a bisection finds a job's position."""
        if self._keys is None:
            self._keys = [self.table.order_key(job) for job in self._rows]
        return self._keys

    def count_pass(self) -> None:
        """Count one more pass for each waiting job."""
        self._pass += 1
