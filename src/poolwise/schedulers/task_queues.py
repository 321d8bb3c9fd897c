"""FIFO queues of waiting tasks, one per class of equal tasks."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import PolicyError
from poolwise.interfaces import QueuePolicy
from poolwise.model import JobTable, Machine, Queue, Refusal, Snapshot
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.placement.units.view import Task


class TaskQueueTurn(NamedTuple):
    """Sort key of a job: negated static priority, then the queue order."""

    priority: float
    submit: int
    id: int
    name: str


LAST = TaskQueueTurn(float("inf"), 0, 0, "")
"""Turn that follows all others."""

_Heap = list[tuple[TaskQueueTurn, Task]]


class TaskQueues:
    """Waiting tasks in FIFO lanes, one for each combination of values in some columns, ordered by turn.

    Parameters
    ----------
    order
        A static queue order.
    columns
        Names of columns of the job table that define a lane; missing columns are ignored.
    judge
        Function that returns the reason why no unit may ever run the tasks of a job (row), None if one may. The result is the
        same for all jobs of a lane.

    Attributes
    ----------
    waiting : row -> number of tasks that wait in a lane, or have left it but not started
    hopeless : row -> reason why no unit may run its tasks, which are in no lane
    """

    def __init__(self, order: QueuePolicy, columns: Sequence[str], judge: Callable[[int], Refusal | None]) -> None:
        self._order, self._columns, self._judge = order, columns, judge
        self._lanes: dict[Hashable, _Heap] = {}
        self.waiting: dict[int, int] = {}
        self.hopeless: dict[int, Refusal] = {}

    def add(self, queue: Queue, jobs: Sequence[int], snapshot: Snapshot) -> TaskQueueTurn:
        """Add the waiting tasks of jobs to their lanes; return the first of their turns."""
        turns = self._turns(queue.table, jobs, snapshot)
        columns_present = [queue.table.attributes[name] for name in self._columns if name in queue.table.attributes]
        for job, turn in zip(jobs, turns, strict=True):
            tasks = queue.tasks(job)
            self.waiting[job] = len(tasks)
            lane = tuple(column[job].item() for column in columns_present)
            if lane not in self._lanes:
                refusal = self._judge(job)
                if refusal is not None:
                    self.hopeless[job] = refusal
                    continue
                self._lanes[lane] = []
            for number in tasks:
                heapq.heappush(self._lanes[lane], (turn, Task(job, number)))
        return min(turns, default=LAST)

    def started(self, task: Task) -> None:
        """Record the start of a task."""
        self.waiting[task.job] -= 1
        if not self.waiting[task.job]:
            del self.waiting[task.job]

    def serve(self, take: Callable[[TaskQueueTurn, Task], bool]) -> None:
        """Offer the head of each lane to `take`, by turn; if `take` accepts it, continue with the lane's next task."""
        heads = [(*tasks[0], lane) for lane, tasks in self._lanes.items()]
        heapq.heapify(heads)
        while heads:
            turn, task, lane = heads[0]
            tasks = self._lanes[lane]
            if take(turn, task):
                heapq.heappop(tasks)
                if tasks:
                    heapq.heapreplace(heads, (*tasks[0], lane))
                    continue
                del self._lanes[lane]
            heapq.heappop(heads)

    def _turns(self, table: JobTable, jobs: Sequence[int], snapshot: Snapshot) -> list[TaskQueueTurn]:
        """Return the turns of jobs; a static priority does not depend on other waiting jobs."""
        queue = Queue(table)
        for job in jobs:
            queue.add(job)
        priority = dict(zip(queue.jobs.tolist(), _priorities(self._order, queue, snapshot).tolist(), strict=True))
        return [TaskQueueTurn(-priority[job], *table.order_key(job)) for job in jobs]


def _priorities(order: QueuePolicy, queue: Queue, snapshot: Snapshot) -> FloatArray:
    """Return the priorities, (n_queued,); raise PolicyError for NaN or a wrong shape."""
    priority = order.priority(queue, snapshot)
    if priority.shape != queue.jobs.shape or bool(np.isnan(priority).any()):
        raise PolicyError(f"{type(order).__name__} must return {len(queue)} numeric priorities, got {priority!r}", by=order)
    return priority


def keeps_arrivals(order: QueuePolicy, machine: Machine, table: JobTable) -> bool:
    """Return whether a static order serves the jobs of a table in order of arrival."""
    free = machine.capacity
    idle = Snapshot(0, machine, table, free, free, RunTable(free.size), Ideal())
    return not bool((np.diff(_priorities(order, Queue.of(table, np.arange(len(table))), idle)) > 0).any())


def lanes_of(table: JobTable, columns: Iterable[str]) -> IntArray:
    """Return the lane number of each job, (n_job,); jobs with equal values in the columns share a lane."""
    present = [table.attributes[name] for name in columns if name in table.attributes]
    if not present or not len(table):
        return np.zeros(len(table), dtype=np.int64)
    return np.unique(np.stack(present, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
