"""Greedy task-by-task placement on shared nodes: the baselines of flow scheduling.

Source: specs of the flow placement, "Baselines" (Kubernetes: filter, then least allocated; Slurm with rCUDA: local devices
first, then random ones of other nodes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import (
    Changes,
    Decisions,
    JobTable,
    Machine,
    Placement,
    Queue,
    Reason,
    Reject,
    Snapshot,
    Start,
    Wait,
    WaitCause,
)
from poolwise.random import uniform
from poolwise.registry import register
from poolwise.schedulers.flow.flow_layout import FlowLayout, room
from poolwise.schedulers.flow.idle import IdleMachine, shortage
from poolwise.schedulers.flow.shapes import ANYWHERE, Requests, ShapeTable


@dataclass(frozen=True)
class Greedy(Scheduler):
    """Base of both baselines. A job starts completely or is skipped, and a skipped job blocks no other: gangs may starve."""

    pooled: ClassVar[bool]
    """True if a task may use devices of other nodes."""

    def open(self, machine: Machine, seed: int) -> GreedyDispatcher:
        """Start a run; raise InputError as `FlowScheduler` does."""
        shapes = ShapeTable(FlowLayout.of(machine), Requests())
        return GreedyDispatcher(shapes.layout, shapes, IdleMachine(shapes, self.pooled), self.pooled, seed)

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError as `FlowScheduler` does."""
        self.open(machine, 0).shapes.check(jobs)


@register("schedulers", "least_allocated")
@dataclass(frozen=True)
class LeastAllocated(Greedy):
    """Places each waiting task on the node with enough of everything that has the largest free share after placement.

    The share is the mean over the node's resources. A job starts completely or is skipped, and a skipped job blocks no other,
    so gangs may starve.
    """

    pooled = False


@register("schedulers", "local_first_random")
@dataclass(frozen=True)
class LocalFirstRandom(Greedy):
    """Places tasks as `LeastAllocated` does; if no node has all devices free, the missing ones come from random other nodes."""

    pooled = True


@dataclass(frozen=True, eq=False)
class GreedyDispatcher(Dispatcher):
    """State of a run; it can be rebuilt at any time."""

    layout: FlowLayout
    shapes: ShapeTable
    idle: IdleMachine
    pooled: bool
    seed: int

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Reject jobs that can never run; if there are none, start those that fit, oldest first."""
        never = self.idle.refusals(queue, snapshot)
        if never and not snapshot.may_grow:
            return Decisions(tuple(Reject(job, refusal.reason) for job, refusal in never.items()))
        decisions: list[Wait | Start] = [Wait(job, refusal) for job, refusal in never.items()]
        reasons, ahead = dict[int, Reason](), 0
        free = self.layout.amounts(snapshot.free)
        stock = {kind: self.layout.free_devices(snapshot.free, kind) for kind in self.layout.kinds}
        failed: set[tuple[int, int]] = set()
        jobs, shapes = queue.jobs.tolist(), self.shapes.of(queue.table, queue.jobs).tolist()
        for job, shape in zip(jobs, shapes, strict=True):
            tasks = queue.tasks(job)
            if job in never:
                continue
            hopeless = (shape, len(tasks)) in failed
            placement = None if hopeless else self._place(shape, int(queue.table.draw[job]), tasks, free, stock)
            if placement is not None:
                decisions.append(Start(job, tasks, placement))
                continue
            failed.add((shape, len(tasks)))  # what is free only shrinks within a pass
            explain = job in changes.explain
            short = shortage(self.shapes, np.array([shape]), len(tasks), free, pooled=self.pooled) if explain else None
            if short is not None:
                reasons[job] = Reason.of(WaitCause.SHORT, short.reason, short, ahead=ahead)
            ahead += 1
        return Decisions(tuple(decisions), reasons=reasons)

    def _place(
        self, shape: int, draw: int, tasks: tuple[int, ...], free: IntArray, stock: dict[str, BoolArray]
    ) -> Placement | None:
        """Place all tasks of a job and subtract them from `free` and `stock`, or none; `draw` is the job's draw counter."""
        left, devices = free.copy(), {kind: available.copy() for kind, available in stock.items()}
        rows: list[tuple[int, int, int, int]] = []
        demand, n = self.shapes.demand(np.array([shape]))[0], len(self.layout.columns)
        pinned = int(self.shapes.pinned(np.array([shape]))[0])
        for task in tasks:
            node = self._node(pinned, demand, left)
            if node < 0:
                return None
            left[node, :n] -= demand[:n]
            columns = self.layout.columns.tolist()
            rows += [(task, int(self.layout.nodes[node]), c, a) for c, a in zip(columns, demand[:n].tolist(), strict=True) if a]
            if not demand[:n].any():
                rows.append((task, int(self.layout.nodes[node]), columns[0], 0))
            for k, kind in enumerate(self.layout.kinds, start=n):
                for position in self._devices(draw * 65536 + task, kind, int(demand[k]), node, devices[kind]):
                    devices[kind][position] = False
                    left[self.layout.spot[kind][position], k] -= 1
                    rows.append((task, int(self.layout.owners[kind][position]), self.layout.device_column, 1))
        free[:] = left
        stock.update(devices)
        return Placement.of(rows)

    def _node(self, pinned: int, demand: IntArray, free: IntArray) -> int:
        """Return the least allocated node with all resources (or all but devices if these may be remote); -1 for none."""
        n = len(self.layout.columns)
        nodes = free[: len(self.layout.nodes)]
        capacity = np.maximum(self.layout.machine.capacity[np.ix_(self.layout.nodes, self.layout.columns)], 1)
        bare = np.where(np.arange(len(demand)) < n, demand, 0)
        short = (demand > free.sum(axis=0)).any()
        for required in (demand, bare) if self.pooled and not short else (demand,):
            fits = room(nodes, required[None], 1)[0] > 0
            fits &= (pinned == ANYWHERE) | (np.arange(len(nodes)) == pinned)
            if fits.any():
                share = ((nodes[:, :n] - demand[:n]) / capacity).mean(axis=1)
                return int(np.argmax(np.where(fits, share, -np.inf)))
        return -1

    def _devices(self, draw: int, kind: str, many: int, node: int, free: BoolArray) -> list[int]:
        """Return the positions of `many` free devices: those of the node first, then random others."""
        there = np.flatnonzero(free)
        order = uniform(self.seed, f"local_first_random.{kind}", draw, there)
        away = self.layout.spot[kind][there] != node
        chosen: list[int] = there[np.lexsort((np.where(away, order, there), away))][:many].tolist()
        return chosen
