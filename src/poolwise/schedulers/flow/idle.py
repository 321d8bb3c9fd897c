"""Capacity of the idle machine, which identifies jobs that can never run, and shortages of waiting jobs."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, IntArray, arrays_equal, immutable
from poolwise.model import JobTable, Queue, Refusal, Snapshot
from poolwise.schedulers.flow.classes import merged
from poolwise.schedulers.flow.flow_layout import room
from poolwise.schedulers.flow.shapes import NOWHERE, ShapeTable

_MANY = 1 << 31
"""Upper bound on tasks per job, small enough that sums over nodes fit into 64 bits."""


class IdleMachine:
    """Capacity of the idle machine per shape, evaluated once while capacities stay the same.

    All tasks of a job are equal, so the number of tasks that fit is exact. Earlier evaluations are a cache.
    """

    def __init__(self, shapes: ShapeTable, pooled: bool) -> None:
        self.shapes, self.layout, self.pooled = shapes, shapes.layout, pooled
        self._capacity: IntArray | None = None
        self._nodes = self._distinct = self._count = np.zeros(0, dtype=np.int64)
        self._devices = np.zeros(0, dtype=np.int64)  # (n_kind,) devices of the whole machine
        self._holds = np.zeros((0, 2), dtype=np.int64)  # (n_shape, 2) tasks with and without their devices; -1 if unknown
        self._judged = np.zeros(0, dtype=np.int64)  # by row: number of waiting tasks for which a job was evaluated, or 0
        self._never: dict[int, Refusal] = {}  # by row: reason why a job can never start

    def refusals(self, queue: Queue, snapshot: Snapshot) -> dict[int, Refusal]:
        """Return the waiting jobs that could not start even on the idle machine, in queue order, with reasons."""
        self._refresh(snapshot)
        jobs, tasks = queue.jobs, queue.waiting()
        if len(self._judged) < len(queue.table):
            self._judged = np.concatenate([self._judged, np.zeros(len(queue.table), dtype=np.int64)])
        fresh = self._judged[jobs] != tasks
        if fresh.any():
            self._judge(queue, jobs[fresh], tasks[fresh], snapshot)
        return {job: self._never[job] for job in jobs.tolist() if job in self._never} if self._never else {}

    def _judge(self, queue: Queue, jobs: IntArray, tasks: IntArray, snapshot: Snapshot) -> None:
        """Evaluate which jobs, (k,), could not start all of their tasks, (k,), at once on the idle machine."""
        number = self.shapes.of(queue.table, jobs)
        holds, demand = self._held_tasks(number, snapshot), self.shapes.demand(number)
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
        """Return whether the tasks of each shape, (k,), would find their devices on their own nodes of the idle machine."""
        return self._held_tasks(number, snapshot)[:, 0] >= tasks

    def _why(self, table: JobTable, job: IntArray, tasks: int, demand: IntArray, holds: IntArray) -> Refusal:
        """Return why tasks of a job, (1,), can never start, given one task's demand and the number that the machine holds."""
        problem = self.shapes.problem(table, job)
        if problem is not None:
            return Refusal(problem.message)
        n = len(self.layout.columns)
        total = demand[n:] * tasks
        if (total > self._devices).any():
            k = int(np.argmax(total > self._devices))
            kind, needed, present = self.layout.kinds[k], int(total[k]), int(self._devices[k])
            return Refusal(f"requests {needed} {kind}, but the machine has {present}", kind, needed, present)
        what = "" if holds[1] < tasks else " with their devices"
        return Refusal(f"its {tasks} tasks do not fit on the nodes of the idle machine{what}")

    def _held_tasks(self, number: IntArray, snapshot: Snapshot) -> IntArray:
        """Return how many tasks of each shape the idle machine holds, with and without their devices, (k, 2)."""
        self._refresh(snapshot)
        most = int(number.max(initial=-1)) + 1
        if len(self._holds) < most:
            self._holds = np.concatenate([self._holds, np.full((most, 2), -1, dtype=np.int64)])
        fresh = np.unique(number[self._holds[number, 0] < 0])
        if len(fresh):
            self._holds[fresh] = self._count_tasks(fresh)
        return self._holds[number]

    def _refresh(self, snapshot: Snapshot) -> None:
        """Read the capacities, and clear the cache if they have changed."""
        if self._capacity is not None and arrays_equal(self._capacity, snapshot.capacity):
            return
        self._capacity = immutable(snapshot.capacity)
        amounts, n = self.layout.amounts(self._capacity), len(self.layout.columns)
        self._nodes, self._devices = amounts[: len(self.layout.nodes)], amounts[:, n:].sum(axis=0)
        of, first = merged(*self._nodes.T)
        self._distinct, self._count = self._nodes[first], np.bincount(of)
        self._holds = np.zeros((0, 2), dtype=np.int64)
        self._judged, self._never = np.zeros(0, dtype=np.int64), {}

    def _count_tasks(self, number: IntArray) -> IntArray:
        """Compute `_held_tasks` for (k,) shapes."""
        demand, pinned = self.shapes.demand(number), self.shapes.pinned(number)
        bare = demand.copy()
        bare[:, len(self.layout.columns) :] = 0
        kinds, of = np.unique(np.concatenate([demand, bare]), axis=0, return_inverse=True)
        counts = (room(self._distinct, kinds, _MANY) @ self._count)[of.reshape(2, -1)].T
        for k in np.flatnonzero(pinned >= 0).tolist():
            counts[k] = room(self._nodes[pinned[k]][None], np.stack([demand[k], bare[k]]), _MANY)[:, 0]
        return counts


def shortage(shapes: ShapeTable, shape: IntArray, tasks: int, amounts: IntArray, *, pooled: bool) -> Refusal | None:
    """Find what tasks of one shape, (1,), lack in the free amounts, (n_spot, n_resource + n_kind); None if all tasks fit.

    The checks are, in this order: a resource that is short in total, a resource of nodes that is too fragmented, and several
    resources that are not free together on one node.
    """
    layout, demand, pinned = shapes.layout, shapes.demand(shape)[0], int(shapes.pinned(shape)[0])
    n = len(layout.columns)
    nodes = amounts[: len(layout.nodes)] if pinned < 0 else amounts[[pinned]]
    for k in np.flatnonzero(demand).tolist():
        name, amount = layout.resources[k], int(demand[k])
        available = amounts[:, k] if pooled and k >= n else nodes[:, k]
        if amount * tasks > (total := int(available.sum())):
            return Refusal(f"not enough free {name}", name, amount * tasks, total)
        if pooled and k >= n:
            continue
        if amount > (most := int(available.max())):
            return Refusal(f"no node has enough free {name}", name, amount, most)
        if tasks > (fit := int((available // amount).sum())):
            return Refusal(f"free {name} is too fragmented for all its tasks", name, amount * tasks, amount * fit)
    on_nodes = np.where(np.arange(len(demand)) < n, demand, 0) if pooled else demand
    if int(room(nodes, on_nodes[None], tasks).sum()) < tasks:
        return Refusal("each resource is free, but not enough of them on the same nodes")
    return None
