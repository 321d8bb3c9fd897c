"""List scheduling: a queue order, a backfill and a placement policy put together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.errors import PolicyError
from poolwise.interfaces import BackfillPolicy, Dispatcher, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import Changes, Decision, Machine, Plan, Queue, Refusal, Reject, Snapshot, Workload
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.registry import register


@register("schedulers", "list")
@dataclass(frozen=True)
class ListScheduler(Scheduler):
    """Rigid jobs, one pass an instant: reject what can never run, order the queue, let the backfill choose."""

    order: QueuePolicy = field(default_factory=FCFS)
    backfill: BackfillPolicy = field(default_factory=Easy)
    placement: PlacementPolicy = field(default_factory=RackPlacement)

    def open(self, machine: Machine, workload: Workload, seed: int) -> Dispatcher:
        """Begin a run; list scheduling draws nothing, and keeps nothing unless its backfill keeps reservations."""
        return ListDispatcher(replace(self, backfill=self.backfill.open()))


@dataclass(frozen=True)
class ListDispatcher(Dispatcher):
    """A run of a list scheduler."""

    scheduler: ListScheduler

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Reject newly arrived jobs that do not fit the empty machine; choose starts among the rest."""
        order, backfill, placement = self.scheduler.order, self.scheduler.backfill, self.scheduler.placement
        rejects = self._impossible(changes, snapshot)
        if rejects:
            if changes.arrived == tuple(reject.job for reject in rejects) and changes == Changes(arrived=changes.arrived):
                return Plan(tuple(rejects))  # jobs turned away at the door are no reason for a pass
            queue = queue.only(np.setdiff1d(queue.jobs, [reject.job for reject in rejects]))
        jobs = queue.jobs
        if not len(jobs):
            return Plan(tuple(rejects))
        if not backfill.sees_every_pass and not placement.screen(jobs, snapshot.free[None], snapshot).any():
            return Plan(tuple(rejects))  # nothing fits: no order can start anything, nor is anything promised
        priority = order.priority(queue, snapshot)
        if priority.shape != jobs.shape or bool(np.isnan(priority).any()):
            raise PolicyError(f"{type(order).__name__} must return {len(jobs)} priorities that are numbers, got {priority!r}")
        decisions: list[Decision] = [*rejects, *backfill.select(jobs, priority, snapshot, placement)]
        return Plan(tuple(decisions))

    def _impossible(self, changes: Changes, snapshot: Snapshot) -> list[Reject]:
        rejects = []
        if changes.arrived:
            empty = snapshot.empty()
            for job in changes.arrived:
                found = self.scheduler.placement.place(snapshot.table.job(job), empty)
                if isinstance(found, Refusal):
                    rejects.append(Reject(job, f"cannot fit on the empty machine: {found.reason}"))
        return rejects
