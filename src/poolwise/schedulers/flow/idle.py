"""What the machine would have room for if nothing ran on it: which jobs can never run."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, IntArray, arrays_equal, immutable
from poolwise.model import JobTable, Queue, Refusal, Snapshot
from poolwise.schedulers.flow.classes import merged
from poolwise.schedulers.flow.flow_layout import room
from poolwise.schedulers.flow.shapes import NOWHERE, ShapeTable

_MANY = 1 << 31
"""More tasks than any job has, and few enough to be summed over nodes in 64 bits."""


class IdleMachine:
    """The idle machine, asked once about each shape for as long as its capacities stay the same.

    Tasks of a job are alike, so that counting how many of them it holds is exact. What was asked before is a cache.
    """

    def __init__(self, shapes: ShapeTable, pooled: bool) -> None:
        self.shapes, self.layout, self.pooled = shapes, shapes.layout, pooled
        self._capacity: IntArray | None = None
        self._nodes = self._distinct = self._count = np.zeros(0, dtype=np.int64)
        self._devices = np.zeros(0, dtype=np.int64)  # (n_kind,) in the whole machine
        self._holds = np.zeros((0, 2), dtype=np.int64)  # (n_shape, 2) tasks with their devices, and without; -1 if not asked
        self._judged = np.zeros(0, dtype=np.int64)  # by row: waiting tasks for which a job was judged, 0 for none
        self._never: dict[int, Refusal] = {}  # by row: why those could not start that were refused

    def refusals(self, queue: Queue, snapshot: Snapshot) -> dict[int, Refusal]:
        """Waiting jobs that could not start even if nothing ran, in the order of the queue, and why."""
        self._look(snapshot)
        jobs, tasks = queue.jobs, queue.waiting()
        if len(self._judged) < len(queue.table):
            self._judged = np.concatenate([self._judged, np.zeros(len(queue.table), dtype=np.int64)])
        fresh = self._judged[jobs] != tasks
        if fresh.any():
            self._judge(queue, jobs[fresh], tasks[fresh], snapshot)
        return {job: self._never[job] for job in jobs.tolist() if job in self._never} if self._never else {}

    def _judge(self, queue: Queue, jobs: IntArray, tasks: IntArray, snapshot: Snapshot) -> None:
        """Find out which of (k,) jobs could not start even if nothing ran, (k,) tasks of each at once."""
        number = self.shapes.of(queue.table, jobs)
        holds, demand = self._asked(number, snapshot), self.shapes.demand(number)
        never = (demand[:, len(self.layout.columns) :] * tasks[:, None] > self._devices).any(axis=1) | (holds[:, 1] < tasks)
        never |= self.shapes.foreign(number) | (self.shapes.pinned(number) == NOWHERE)
        if not self.pooled:
            never |= holds[:, 0] < tasks
        self._judged[jobs] = tasks
        for job in jobs.tolist() if self._never else ():
            self._never.pop(job, None)
        for k in np.flatnonzero(never).tolist():
            self._never[int(jobs[k])] = self._why(queue.table, jobs[k : k + 1], int(tasks[k]), demand[k], holds[k])

    def local(self, number: IntArray, tasks: IntArray, snapshot: Snapshot) -> BoolArray:
        """(k,) whether (k,) numbers of tasks, one for each of (k,) shapes, would find their devices on their own nodes."""
        found: BoolArray = self._asked(number, snapshot)[:, 0] >= tasks
        return found

    def _why(self, table: JobTable, job: IntArray, tasks: int, demand: IntArray, holds: IntArray) -> Refusal:
        """Why a number of tasks of a job, (1,), can never start, given what one asks for and how many the machine holds."""
        problem = self.shapes.problem(table, job)
        if problem is not None:
            return Refusal(problem.message)
        n = len(self.layout.columns)
        asks = demand[n:] * tasks
        if (asks > self._devices).any():
            k = int(np.argmax(asks > self._devices))
            kind, asked, there = self.layout.kinds[k], int(asks[k]), int(self._devices[k])
            return Refusal(f"asks for {asked} {kind}, the machine has {there}", kind, asked, there)
        what = "" if holds[1] < tasks else " with their devices"
        return Refusal(f"its {tasks} tasks do not fit on the nodes of the idle machine{what}")

    def _asked(self, number: IntArray, snapshot: Snapshot) -> IntArray:
        """(k, 2) tasks of each of (k,) shapes that the idle machine holds, with their devices, and without."""
        self._look(snapshot)
        most = int(number.max(initial=-1)) + 1
        if len(self._holds) < most:
            self._holds = np.concatenate([self._holds, np.full((most, 2), -1, dtype=np.int64)])
        fresh = np.unique(number[self._holds[number, 0] < 0])
        if len(fresh):
            self._holds[fresh] = self._ask(fresh)
        return self._holds[number]

    def _look(self, snapshot: Snapshot) -> None:
        """Read the capacities, and forget what was asked where they have changed."""
        if self._capacity is not None and arrays_equal(self._capacity, snapshot.capacity):
            return
        self._capacity = immutable(snapshot.capacity)
        amounts, n = self.layout.amounts(self._capacity), len(self.layout.columns)
        self._nodes, self._devices = amounts[: len(self.layout.nodes)], amounts[:, n:].sum(axis=0)
        of, first = merged(*self._nodes.T)
        self._distinct, self._count = self._nodes[first], np.bincount(of)
        self._holds = np.zeros((0, 2), dtype=np.int64)
        self._judged, self._never = np.zeros(0, dtype=np.int64), {}

    def _ask(self, number: IntArray) -> IntArray:
        """Work out `_asked` for (k,) shapes."""
        demand, pinned = self.shapes.demand(number), self.shapes.pinned(number)
        bare = demand.copy()
        bare[:, len(self.layout.columns) :] = 0
        kinds, of = np.unique(np.concatenate([demand, bare]), axis=0, return_inverse=True)
        found = (room(self._distinct, kinds, _MANY) @ self._count)[of.reshape(2, -1)].T
        for k in np.flatnonzero(pinned >= 0).tolist():
            found[k] = room(self._nodes[pinned[k]][None], np.stack([demand[k], bare[k]]), _MANY)[:, 0]
        return found
