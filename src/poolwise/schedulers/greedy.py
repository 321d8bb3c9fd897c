"""Greedy placement on shared nodes, one task after the other: the baselines of flow scheduling.

Source: specs of the flow placement, "Baselines" (Kubernetes: filter, then least allocated; Slurm with rCUDA: local devices
first, then random ones of other nodes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray
from poolwise.draws import uniform
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Decision, Machine, Placement, Plan, Queue, Reject, Snapshot, Start, Workload
from poolwise.registry import register
from poolwise.schedulers.flow.admission import Idle
from poolwise.schedulers.flow.layout import FlowLayout, Shapes, room


@register("schedulers", "least_allocated")
@dataclass(frozen=True)
class LeastAllocated(Scheduler):
    """Each waiting task in turn goes to the node, of those that have all it asks for, with the largest share free.

    The share is the mean over what nodes have, after placing. A job starts whole or is skipped and blocks nobody, so a gang
    may starve.
    """

    def open(self, machine: Machine, workload: Workload, seed: int) -> Dispatcher:
        """Begin a run. Raises InputError as `FlowScheduler` does."""
        return _dispatcher(machine, workload, seed, pooled=False)


@register("schedulers", "local_first_random")
@dataclass(frozen=True)
class LocalFirstRandom(Scheduler):
    """As least allocated, but where no node has the devices too, they come from random other nodes."""

    def open(self, machine: Machine, workload: Workload, seed: int) -> Dispatcher:
        """Begin a run. Raises InputError as `FlowScheduler` does."""
        return _dispatcher(machine, workload, seed, pooled=True)


def _dispatcher(machine: Machine, workload: Workload, seed: int, *, pooled: bool) -> Dispatcher:
    layout = FlowLayout.of(machine)
    shapes = Shapes.read(workload, layout)
    return GreedyDispatcher(layout, shapes, Idle.of(layout, shapes, pooled), pooled, seed)


@dataclass(frozen=True, eq=False)
class GreedyDispatcher(Dispatcher):
    """A run; remembers nothing."""

    layout: FlowLayout
    shapes: Shapes
    idle: Idle
    pooled: bool
    seed: int

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Reject what can never run, start what fits, oldest first."""
        decisions: list[Decision] = []
        free = self.layout.amounts(snapshot.free)
        stock = {kind: self.layout.free_devices(snapshot.free, kind) for kind in self.layout.kinds}
        failed: set[int] = set()
        for job in queue.jobs.tolist():
            shape = int(self.shapes.of[job])
            if why := self.idle.why_not[shape]:
                decisions.append(Reject(job, why))
            elif shape not in failed:
                found = self._place(job, queue.tasks(job), free, stock)
                if found is None:
                    failed.add(shape)  # what is free only shrinks within a pass
                else:
                    decisions.append(Start(job, queue.tasks(job), found))
        return Plan(tuple(decisions))

    def _place(self, job: int, tasks: tuple[int, ...], free: IntArray, stock: dict[str, np.ndarray]) -> Placement | None:
        """Place all tasks of a job, taking them off `free` and `stock`, or none."""
        left, devices = free.copy(), {kind: there.copy() for kind, there in stock.items()}
        rows: list[tuple[int, int, int, int]] = []
        demand, n = self.shapes.demand[job], len(self.layout.columns)
        for task in tasks:
            node = self._node(job, demand, left)
            if node < 0:
                return None
            left[node, :n] -= demand[:n]
            columns = self.layout.columns.tolist()
            rows += [(task, int(self.layout.nodes[node]), c, a) for c, a in zip(columns, demand[:n].tolist(), strict=True) if a]
            if not demand[:n].any():
                rows.append((task, int(self.layout.nodes[node]), columns[0], 0))
            for k, kind in enumerate(self.layout.kinds, start=n):
                for position in self._devices(job, task, kind, int(demand[k]), node, devices[kind]):
                    devices[kind][position] = False
                    left[self.layout.spot[kind][position], k] -= 1
                    rows.append((task, int(self.layout.devices[kind][position]), self.layout.device_column, 1))
        free[:] = left
        stock.update(devices)
        return Placement.of(rows)

    def _node(self, job: int, demand: IntArray, free: IntArray) -> int:
        """Least allocated node with everything; if devices may be remote, else one with all but the devices. -1 for none."""
        n = len(self.layout.columns)
        nodes = free[: len(self.layout.nodes)]
        capacity = np.maximum(self.layout.machine.capacity[np.ix_(self.layout.nodes, self.layout.columns)], 1)
        pinned = int(self.shapes.pinned[self.shapes.of[job]])
        bare = np.where(np.arange(len(demand)) < n, demand, 0)
        short = (demand > free.sum(axis=0)).any()
        for asked in (demand, bare) if self.pooled and not short else (demand,):
            fits = room(nodes, asked[None], 1)[0] > 0
            fits &= (pinned < 0) | (np.arange(len(nodes)) == pinned)
            if fits.any():
                share = ((nodes[:, :n] - demand[:n]) / capacity).mean(axis=1)
                return int(np.argmax(np.where(fits, share, -np.inf)))
        return -1

    def _devices(self, job: int, task: int, kind: str, many: int, node: int, free: np.ndarray) -> list[int]:
        """Positions of `many` free devices: those of the node first, then others at random."""
        there = np.flatnonzero(free)
        order = uniform(self.seed, f"local_first_random.{kind}", job * 65536 + task, there)
        away = self.layout.spot[kind][there] != node
        chosen: list[int] = there[np.lexsort((np.where(away, order, there), away))][:many].tolist()
        return chosen
