"""List scheduling: a queue order, a backfill and a placement policy put together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.errors import PolicyError
from poolwise.interfaces import BackfillPolicy, Dispatcher, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import Changes, Decision, Machine, Plan, Queue, Refusal, Reject, Snapshot, Wait
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.registry import register
from poolwise.schedulers.fitting import NEVER_FITS, Fitting


@register("schedulers", "list")
@dataclass(frozen=True)
class ListScheduler(Scheduler):
    """Rigid jobs, one pass an instant: reject what can never run; else order the queue and let the backfill choose."""

    order: QueuePolicy = field(default_factory=FCFS)
    backfill: BackfillPolicy = field(default_factory=Easy)
    placement: PlacementPolicy = field(default_factory=RackPlacement)

    @property
    def remembers(self) -> str:
        """What the backfill remembers."""
        return self.backfill.remembers

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run; list scheduling draws nothing."""
        return ListDispatcher(replace(self, backfill=self.backfill.open()))


@dataclass
class ListDispatcher(Dispatcher):
    """A run of a list scheduler; which jobs fit the machine at all is a cache."""

    scheduler: ListScheduler
    fitting: Fitting = field(default_factory=Fitting)

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Reject jobs that do not fit the empty machine, or else choose starts."""
        order, backfill, placement = self.scheduler.order, self.scheduler.backfill, self.scheduler.placement
        never = self.fitting.refusals(queue, snapshot, self._refusal)
        if never and not snapshot.may_grow:
            return Plan(tuple(Reject(job, f"{NEVER_FITS}: {refusal.reason}") for job, refusal in never.items()))
        decisions: list[Decision] = [Wait(job, refusal) for job, refusal in never.items()]
        if never:
            queue = queue.only(np.setdiff1d(queue.jobs, list(never)))
        jobs = queue.jobs
        if not len(jobs):
            return Plan(tuple(decisions))
        if not backfill.sees_every_pass and not placement.screen(jobs, snapshot.free[None], snapshot).any():
            return Plan(tuple(decisions))  # nothing fits: no order can start anything
        priority = order.priority(queue, snapshot)
        if priority.shape != jobs.shape or bool(np.isnan(priority).any()):
            raise PolicyError(f"{type(order).__name__} must return {len(jobs)} priorities that are numbers, got {priority!r}")
        starts = backfill.select(queue, priority, snapshot, placement)
        return Plan((*decisions, *starts))

    def _refusal(self, job: int, empty: Snapshot) -> Refusal | None:
        found = self.scheduler.placement.place(empty.table.job(job), empty)
        return found if isinstance(found, Refusal) else None
