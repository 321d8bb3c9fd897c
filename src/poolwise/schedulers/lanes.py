"""Waiting tasks in lanes: within each, one after another."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from poolwise.arrays import IntArray
from poolwise.interfaces import QueuePolicy
from poolwise.model import Machine, Queue, Snapshot, Workload
from poolwise.model.runs import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.units.view import Task


class Lanes:
    """Tasks in lanes, each in the order of the ranks; FIFOs where the ranks are the rows.

    Parameters
    ----------
    lane
        (n_job,) lane of each job's tasks, as `lanes_of` returns them.
    rank
        (n_job,) place of each job in the order, as `ranks_of` returns them.
    """

    def __init__(self, lane: IntArray, rank: IntArray) -> None:
        self._lane, self._rank = lane, rank
        self._tasks: dict[int, list[tuple[int, Task]]] = {}  # heaps

    def add(self, queue: Queue, jobs: Iterable[int]) -> None:
        """Let the waiting tasks of jobs join their lanes."""
        for job in jobs:
            lane, rank = self._tasks.setdefault(int(self._lane[job]), []), int(self._rank[job])
            for number in queue.tasks(job):
                heapq.heappush(lane, (rank, Task(job, number)))

    def serve(self, take: Callable[[Task], bool]) -> None:
        """Ask `take` for the first task of each lane, by rank; where it takes one, the lane goes on."""
        heads = [(tasks[0], lane) for lane, tasks in self._tasks.items() if tasks]
        heapq.heapify(heads)
        while heads:
            (_, task), lane = heads[0]
            tasks = self._tasks[lane]
            taken = take(task)
            if taken:
                heapq.heappop(tasks)
            if taken and tasks:
                heapq.heapreplace(heads, (tasks[0], lane))
            else:
                heapq.heappop(heads)


def ranks_of(order: QueuePolicy, machine: Machine, workload: Workload) -> IntArray:
    """(n_job,) place of each job under a static order, ties by row."""
    n = len(workload)
    if type(order) is FCFS or not n:
        return np.arange(n)
    queue, free = Queue(workload), machine.capacity
    for job in range(n):
        queue.add(job)
    priority = order.priority(queue, Snapshot(0, machine, workload, free, free, RunTable(free.size), Ideal()))
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(-priority, kind="stable")] = np.arange(n)
    return rank


def lanes_of(workload: Workload, columns: Sequence[str]) -> IntArray:
    """(n_job,) number of each job's lane: jobs that are alike in the columns share one."""
    known = [workload.attributes[name] for name in columns if name in workload.attributes]
    if not known or not len(workload):
        return np.zeros(len(workload), dtype=np.int64)
    lanes: IntArray = np.unique(np.stack(known, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return lanes
