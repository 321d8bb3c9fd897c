"""List scheduling: a queue order, a backfill and a placement policy put together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.errors import PolicyError
from poolwise.interfaces import (
    BackfillPolicy,
    Dispatcher,
    ListRule,
    PlacementPolicy,
    PreparedOrder,
    QueuePolicy,
    Scheduler,
    backfill_reason,
    opened,
)
from poolwise.model import Changes, Decision, JobTable, Machine, Plan, Queue, Reason, Refusal, Reject, Snapshot, Wait
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
        return ListDispatcher(replace(self, order=opened(self.order), backfill=self.backfill.open()))

    def rule(self) -> ListRule:
        """Its three policies."""
        return ListRule(self.order, self.backfill, self.placement)

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Ask the order and the placement."""
        if isinstance(self.order, PreparedOrder):
            self.order.check(machine, jobs)
        self.placement.check(machine, jobs)


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
            raise PolicyError(
                f"{type(order).__name__} must return {len(jobs)} priorities that are numbers, got {priority!r}", by=order
            )
        starts = tuple(backfill.select(queue, priority, snapshot, placement))
        return Plan((*decisions, *starts), backfill.wake_at(snapshot.now) if len(starts) < len(jobs) else None)

    def why(self, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
        """Ask the backfill, whose pass left out what does not fit the empty machine."""
        aside = plan.waits
        if job in aside:
            return super().why(job, queue, snapshot, plan)
        if aside or plan.rejected:
            queue = queue.only(np.setdiff1d(queue.jobs, [*aside, *plan.rejected]))
        backfill, placement, starts = self.scheduler.backfill, self.scheduler.placement, plan.starts
        priority = self.scheduler.order.priority(queue, snapshot)
        reason = backfill_reason(backfill, job, queue, priority, snapshot, placement, starts)
        mine = int(np.flatnonzero(queue.jobs == job)[0])
        before = priority > priority[mine]
        before[:mine] |= priority[:mine] == priority[mine]
        ahead = before & ~np.isin(queue.jobs, [start.job for start in starts])
        return replace(reason, ahead=int(np.count_nonzero(ahead)))

    def _refusal(self, job: int, empty: Snapshot) -> Refusal | None:
        found = self.scheduler.placement.place(empty.table.job(job), empty)
        return found if isinstance(found, Refusal) else None
