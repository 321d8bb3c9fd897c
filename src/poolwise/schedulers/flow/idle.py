"""What the machine would have room for if nothing ran on it: which jobs can never run."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import Queue, Refusal, Snapshot
from poolwise.schedulers.flow.classes import merged
from poolwise.schedulers.flow.layout import room
from poolwise.schedulers.flow.shapes import NOWHERE, ShapeTable

_MANY = 1 << 31
"""More tasks than any job has, and few enough to be summed over nodes in 64 bits."""


class Idle:
    """The idle machine, asked once about each shape for as long as its capacities stay the same.

    Tasks of a job are alike, so that counting how many of them it holds is exact. What was asked before is a cache.
    """

    def __init__(self, shapes: ShapeTable, pooled: bool) -> None:
        self.shapes, self.layout, self.pooled = shapes, shapes.layout, pooled
        self._capacity: IntArray | None = None
        self._nodes = self._distinct = self._count = np.zeros(0, dtype=np.int64)
        self._devices = np.zeros(0, dtype=np.int64)  # (n_kind,) in the whole machine
        self._holds = np.zeros((0, 2), dtype=np.int64)  # (n_shape, 2) tasks with their devices, and without; -1 if not asked

    def refusals(self, queue: Queue, snapshot: Snapshot) -> dict[int, Refusal]:
        """Waiting jobs that could not start even if nothing ran, in the order of the queue, and why."""
        number, tasks = self.shapes.of(queue.table, queue.jobs), queue.waiting()
        holds, demand = self._asked(number, snapshot), self.shapes.demand(number)
        n = len(self.layout.columns)
        never = (demand[:, n:] * tasks[:, None] > self._devices).any(axis=1) | (holds[:, 1] < tasks)
        never |= self.shapes.foreign(number) | (self.shapes.pinned(number) == NOWHERE)
        if not self.pooled:
            never |= holds[:, 0] < tasks
        return {
            int(queue.jobs[k]): self._why(queue, k, int(tasks[k]), demand[k], holds[k]) for k in np.flatnonzero(never).tolist()
        }

    def local(self, number: IntArray, tasks: IntArray, snapshot: Snapshot) -> BoolArray:
        """(k,) whether so many tasks of each of (k,) shapes would find their devices on their own nodes."""
        found: BoolArray = self._asked(number, snapshot)[:, 0] >= tasks
        return found

    def _why(self, queue: Queue, k: int, tasks: int, demand: IntArray, holds: IntArray) -> Refusal:
        """Why the k-th job of the queue, of which so many tasks wait, can never start."""
        problem = self.shapes.problem(queue.table, queue.jobs[k : k + 1])
        if problem is not None:
            return Refusal(problem.message)
        n = len(self.layout.columns)
        short = np.flatnonzero(demand[n:] * tasks > self._devices)
        if len(short):
            kind, asked, there = (
                self.layout.kinds[int(short[0])],
                int(demand[n + short[0]]) * tasks,
                int(self._devices[short[0]]),
            )
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
        if self._capacity is not None and np.array_equal(self._capacity, snapshot.capacity):
            return
        self._capacity = snapshot.capacity.copy()
        amounts, n = self.layout.amounts(self._capacity), len(self.layout.columns)
        self._nodes, self._devices = amounts[: len(self.layout.nodes)], amounts[:, n:].sum(axis=0)
        of, first = merged(*self._nodes.T)
        self._distinct, self._count = self._nodes[first], np.bincount(of)
        self._holds = np.zeros((0, 2), dtype=np.int64)

    def _ask(self, number: IntArray) -> IntArray:
        """Work out `_asked` for (k,) shapes."""
        demand, pinned = self.shapes.demand(number), self.shapes.pinned(number)
        kinds, of = np.unique(demand, axis=0, return_inverse=True)
        bare = kinds.copy()
        bare[:, len(self.layout.columns) :] = 0
        found = np.stack([room(self._distinct, asked, _MANY) @ self._count for asked in (kinds, bare)], axis=1)[of.reshape(-1)]
        for k in np.flatnonzero(pinned >= 0).tolist():
            here, row = self._nodes[pinned[k]][None], of.reshape(-1)[k]
            found[k] = [int(room(here, asked[row][None], _MANY)[0, 0]) for asked in (kinds, bare)]
        return found
