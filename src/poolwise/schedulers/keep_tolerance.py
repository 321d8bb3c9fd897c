"""Batch scheduling that also resizes running jobs: they give up local memory for waiting jobs and regain any that remains.

Follows Sefati et al., IRoP, conclusion: an agent that watches slowdowns and reallocates memory. Each job stays within its
tolerance, equation (6), as loads change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray
from poolwise.interfaces import Dispatcher
from poolwise.model import Changes, Decision, Decisions, Machine, Placement, Queue, Resize, Run, Snapshot, Start
from poolwise.model.capacity_check import why_no_room
from poolwise.registry import register
from poolwise.schedulers.batch import BatchDispatcher, BatchScheduler, ModuleLayout
from poolwise.short_repr import short_repr


@register("schedulers", "keep_tolerance")
@dataclass(frozen=True)
class KeepTolerance(BatchScheduler):
    """Batch scheduling in which running jobs hold only the least local memory that they accept while other jobs wait for it.

    Each pass assumes that all running jobs hold their least local share (equation 6), places the queue on the resources that
    are then free, and assigns the remaining local memory to the running jobs whose slowdown a MiB reduces most. Resizes move
    the memory of jobs whose split has changed; moving is assumed to cost nothing. Parameters are those of `BatchScheduler`.
    """

    __repr__ = short_repr

    @property
    def resizes(self) -> bool:
        """True, because the scheduler resizes running jobs."""
        return True

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Start a run; raise InputError for a machine without shared nodes or an unknown method."""
        return KeepToleranceDispatcher(self, self.method_of(seed), ModuleLayout.of(machine))


@dataclass(frozen=True)
class SplitMemory:
    """Memory of a running job, split between its node and the pool.

    Attributes
    ----------
    run, node : the run, and the owner number of its node
    local, total : MiB that it holds on the node, and in total
    least : MiB of local memory below which it exceeds its tolerance
    steps : (MiB, slowdown reduction per MiB) above `least`
    """

    run: Run
    node: int
    local: int
    total: int
    least: int
    steps: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class KeepToleranceDispatcher(BatchDispatcher):
    """Stateless dispatcher of `KeepTolerance`."""

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Place the queue as if running jobs had given up local memory, then distribute the memory that remains."""
        jobs = self._running(snapshot)
        free, local = snapshot.free.copy(), {job.run.id: job.local for job in jobs}
        pool, memory = self.layout.pool, self.layout.memory
        for job in jobs:
            yielded = max(0, min(job.local - job.least, int(free[pool, memory]))) if pool >= 0 else 0
            self._move(free, job, -yielded)
            local[job.run.id] -= yielded
        decisions = self.decide_on(queue, snapshot, free)
        for start in decisions.starts:
            start.placement.take_from(free)
        requests = sorted(
            ((gain, -job.run.id, job, size) for job in jobs for size, gain in _local_requests(job, local[job.run.id])),
            key=lambda request: request[:2],
            reverse=True,
        )
        for _, _, job, size in requests:
            taken = max(0, min(size, int(free[job.node, memory]), job.total - local[job.run.id]))
            self._move(free, job, taken)
            local[job.run.id] += taken
        resizes = [Resize(job.run.id, self._split(job, local[job.run.id])) for job in jobs if local[job.run.id] != job.local]
        others = [decision for decision in decisions if not isinstance(decision, Start)]
        return Decisions((*others, *_feasible_order((*resizes, *decisions.starts), snapshot)), decisions.next_wakeup)

    def _running(self, snapshot: Snapshot) -> list[SplitMemory]:
        """Return the memory of running jobs, by run number."""
        layout, running = self.layout, []
        runs = sorted(snapshot.runs(), key=lambda run: run.id)
        if not runs:
            return []
        problem = self.problem(np.array([run.job for run in runs], dtype=np.int64), snapshot, snapshot.free)
        module_of = {node: module for module, node in enumerate(layout.nodes.tolist())}
        for row, run in enumerate(runs):
            held = [(owner, amount) for _, owner, resource, amount in run.placement.rows() if resource == layout.memory]
            node = next(owner for owner in run.placement.owners() if owner in module_of)
            group = int(problem.groups.of_module[module_of[node]])
            local, total = sum(amount for owner, amount in held if owner == node), sum(amount for _, amount in held)
            share = float(problem.least[row, group])
            # a job that exceeds its tolerance at any share keeps its memory
            least = local if math.isnan(share) else math.ceil(share * total - 1e-6)
            steps = () if math.isnan(share) else tuple(problem.steps(row, group))
            running.append(SplitMemory(run, node, local, total, least, steps))
        return running

    def _move(self, free: IntArray, job: SplitMemory, amount: int) -> None:
        """Move MiB of a job from the pool to its node in the free amounts (a negative amount from the node to the pool)."""
        free[job.node, self.layout.memory] -= amount
        if self.layout.pool >= 0:
            free[self.layout.pool, self.layout.memory] += amount

    def _split(self, job: SplitMemory, local: int) -> Placement:
        layout = self.layout
        others = [row for row in job.run.placement.rows() if row[2] != layout.memory]
        remote = job.total - local
        pooled = [(0, layout.pool, layout.memory, remote)] if remote else []
        return Placement.of([*others, (0, job.node, layout.memory, local), *pooled])


def _local_requests(job: SplitMemory, local: int) -> list[tuple[int, float]]:
    """Return requests for local memory as (MiB, slowdown reduction per MiB).

    The memory that restores the tolerance comes first.
    """
    requests = [(job.least - local, math.inf)] if local < job.least else []
    return requests + [(math.ceil(size), gain) for size, gain in job.steps if gain > 0]


def _feasible_order(decisions: Iterable[Resize | Start], snapshot: Snapshot) -> list[Decision]:
    """Order decisions such that each fits when it is applied; omit those that never fit."""
    free, left, ordered = snapshot.free.copy(), list(decisions), list[Decision]()
    while left:
        late: list[Resize | Start] = []
        for decision in left:
            held = snapshot.run(decision.run).placement if isinstance(decision, Resize) else None
            if why_no_room(decision.placement, free, held):
                late.append(decision)
                continue
            if held is not None:
                held.give_to(free)
            decision.placement.take_from(free)
            ordered.append(decision)
        if len(late) == len(left):
            break
        left = late
    return ordered
