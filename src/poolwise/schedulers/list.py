"""List scheduling: combines a queue order, a backfill, a placement policy and an admission policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.interfaces import (
    AdmissionPolicy,
    BackfillPolicy,
    Dispatcher,
    ListRule,
    PlacementPolicy,
    PreparedOrder,
    QueuePolicy,
    Scheduler,
    backfill_reason,
    checked_priorities,
    opened,
)
from poolwise.interfaces.placement import alike_of
from poolwise.model import (
    Changes,
    Decision,
    JobTable,
    Machine,
    Plan,
    Queue,
    Reason,
    Refusal,
    Reject,
    Rule,
    Snapshot,
    Start,
    Wait,
)
from poolwise.model.eligibility import has_tiers, tiers
from poolwise.policies.admission.machine_limits import MachineLimits
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.avoid_windows import AvoidWindows
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.registry import register
from poolwise.schedulers.fitting import NEVER_FITS, Fitting
from poolwise.short_repr import short_repr


@register("schedulers", "list")
@dataclass(frozen=True)
class ListScheduler(Scheduler):
    """Scheduler of rigid jobs: each pass rejects jobs that can never run, orders the queue, and lets the backfill choose.

    On a machine with partitions, jobs of a higher tier come before all others. Jobs that are not admitted are skipped.

    Parameters
    ----------
    order
        Queue order; FCFS by default.
    backfill
        Backfill; EASY by default.
    placement
        Placement; whole nodes in racks by default.
    admission
        Admission; by default the limits that the machine file defines.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.policies import SJF, Easy
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 h", "1 min"])
    >>> scheduler = poolwise.ListScheduler(SJF(), Easy())
    >>> poolwise.simulate(workload, poolwise.Machine.flat(1), scheduler=scheduler, engine="reference").metrics["mean_wait_s"]
    30.0
    """

    __repr__ = short_repr

    order: QueuePolicy = field(default_factory=FCFS)
    backfill: BackfillPolicy = field(default_factory=Easy)
    placement: PlacementPolicy = field(default_factory=RackPlacement)
    admission: AdmissionPolicy = field(default_factory=MachineLimits)

    @property
    def knows_restrictions(self) -> bool:
        """True if the placement supports node restrictions of jobs."""
        return self.placement.knows_eligibility

    @property
    def remembers(self) -> str:
        """State that the backfill keeps between passes."""
        return self.backfill.remembers

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Start a run; list scheduling uses no random numbers."""
        return ListDispatcher(replace(self, order=opened(self.order), backfill=self.backfill.open()))

    def rule(self) -> ListRule | None:
        """Return order, backfill and placement; None with an admission other than the machine's limits."""
        if self.admission != MachineLimits():
            return None
        return ListRule(self.order, self.backfill, self.placement)

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the machine and the jobs with the order, the placement and the admission."""
        if isinstance(self.order, PreparedOrder):
            self.order.check(machine, jobs)
        self.placement.check(machine, jobs)
        self.admission.check(machine, jobs)


@dataclass
class ListDispatcher(Dispatcher):
    """State of a run of a list scheduler; jobs that do not fit on the empty machine or are never admitted are cached."""

    scheduler: ListScheduler
    fitting: Fitting = field(default_factory=Fitting)
    barred: Fitting = field(default_factory=Fitting)

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Reject jobs that are never admitted or do not fit on the empty machine; if there are none, choose starts."""
        barred = self.barred.refusals(queue, snapshot, self.scheduler.admission.never)
        never = self.fitting.refusals(queue, snapshot, self._refusal, self._alike)
        rejects = {job: refusal.reason for job, refusal in barred.items()}
        if not snapshot.may_grow:
            rejects = {**{job: f"{NEVER_FITS}: {refusal.reason}" for job, refusal in never.items()}, **rejects}
        if rejects:
            again = self._wake_at(snapshot) if len(rejects) < len(queue) else None
            return Plan(tuple(Reject(job, reason) for job, reason in rejects.items()), again)
        unfit: list[Decision] = [Wait(job, refusal) for job, refusal in never.items()]
        if never:
            queue = queue.only(np.setdiff1d(queue.jobs, list(never)))
        if not len(queue):
            return Plan(tuple(unfit))
        if not self.scheduler.backfill.sees_every_pass:
            able = _placement(self.scheduler, snapshot).screen(queue.jobs, snapshot.free[None], snapshot)
            if not able.any():  # no job fits, so no order can start any
                return Plan(tuple(unfit), _window_end(snapshot))
        starts = self._starts(queue, snapshot)
        return Plan((*unfit, *starts), self._wake_at(snapshot) if len(starts) < len(queue) else None)

    def _wake_at(self, snapshot: Snapshot) -> int | None:
        """Return the next time at which the backfill needs a pass or a maintenance window ends."""
        times = (self.scheduler.backfill.wake_at(snapshot.now), _window_end(snapshot))
        return min((time for time in times if time is not None), default=None)

    def _starts(self, queue: Queue, snapshot: Snapshot) -> tuple[Start, ...]:
        """Return the backfill's choice among admitted jobs; it chooses again once a start bars another of them."""
        backfill, placement = self.scheduler.backfill, _placement(self.scheduler, snapshot)
        considered = _Considered(queue, self._priority(queue, snapshot), snapshot)
        admitted = self.scheduler.admission.admits(queue, snapshot)
        if admitted is None:
            return tuple(backfill.select(*considered, placement))
        considered, starts, again = considered.only(admitted), list[Start](), True
        while again and len(considered.queue):
            again = False
            for start in backfill.select(*considered, placement):
                starts.append(start)
                considered, again = self._after_start(considered, start)
                if again:
                    break
        return tuple(starts)

    def _after_start(self, considered: _Considered, start: Start) -> tuple[_Considered, bool]:
        """Return the jobs that are still admitted after a start, and whether the start bars any of them."""
        rest = considered.started(start)
        admitted = self.scheduler.admission.admits(rest.queue, rest.snapshot)
        return (rest, False) if admitted is None or admitted.all() else (rest.only(admitted), True)

    def _priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return (n_queued,) priorities; if partitions have different tiers, ranks by tier and priority."""
        order, n = self.scheduler.order, len(queue)
        priority = checked_priorities(order, order.priority(queue, snapshot), n)
        if not has_tiers(snapshot.machine):
            return priority
        ranked = np.lexsort((-priority, -tiers(snapshot.machine, queue.table)[queue.jobs]))  # stable
        found = np.empty(n)
        found[ranked] = -np.arange(n)
        return found

    def why(self, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
        """Return the limit that bars the job, or the backfill's reason for the jobs that fit and are admitted."""
        unfit = plan.waits
        if job in unfit:
            return super().why(job, queue, snapshot, plan)
        if unfit or plan.rejected:
            queue = queue.only(np.setdiff1d(queue.jobs, [*unfit, *plan.rejected]))
        considered, starts = _Considered(queue, self._priority(queue, snapshot), snapshot), plan.starts
        ahead = considered.ahead(job, starts)
        admitted = self.scheduler.admission.admits(queue, snapshot)
        if admitted is not None:
            considered, starts = self._last_choice(considered.only(admitted), starts)
            if job not in considered.queue:
                short = self.scheduler.admission.why(job, queue, considered.snapshot)
                return Reason.of(Rule.LIMIT, short.reason, short, ahead=ahead)
        placement = _placement(self.scheduler, snapshot)
        reason = backfill_reason(self.scheduler.backfill, job, *considered, placement, starts)
        return replace(reason, ahead=ahead)

    def _last_choice(self, considered: _Considered, starts: tuple[Start, ...]) -> tuple[_Considered, tuple[Start, ...]]:
        """Return the input of the backfill's last choice in a pass, and the starts that it chose then."""
        shown, chosen = considered, starts
        for k, start in enumerate(starts, start=1):
            considered, again = self._after_start(considered, start)
            if again:
                shown, chosen = considered, starts[k:]
        return shown, chosen

    def _alike(self, snapshot: Snapshot) -> IntArray | None:
        return alike_of(self.scheduler.placement, snapshot.machine, snapshot.table)

    def _refusal(self, job: int, empty: Snapshot) -> Refusal | None:
        found = self.scheduler.placement.place(empty.table.job(job), empty)
        return found if isinstance(found, Refusal) else None


class _Considered(NamedTuple):
    """Input of a backfill: (n_queued,) jobs, their priorities, and the state after the starts decided so far."""

    queue: Queue
    priority: FloatArray
    snapshot: Snapshot

    def only(self, which: BoolArray) -> _Considered:
        """Return the selected jobs, (n_queued,)."""
        return _Considered(self.queue.only(self.queue.jobs[which]), self.priority[which], self.snapshot)

    def started(self, start: Start) -> _Considered:
        """Return the other jobs, in the state after a start."""
        rest = self.only(self.queue.jobs != start.job)
        return rest._replace(snapshot=self.snapshot.with_started(start.job, start.placement, start.tasks))

    def ahead(self, job: int, starts: tuple[Start, ...]) -> int:
        """Return the number of jobs before this one that the starts leave waiting."""
        jobs, priority = self.queue.jobs, self.priority
        position = int(np.flatnonzero(jobs == job)[0])
        before = priority > priority[position]
        before[:position] |= priority[:position] == priority[position]
        return int(np.count_nonzero(before & ~np.isin(jobs, [start.job for start in starts])))


def _placement(scheduler: ListScheduler, snapshot: Snapshot) -> PlacementPolicy:
    """Return the scheduler's placement, extended to avoid maintenance windows if the machine has any."""
    return AvoidWindows(scheduler.placement) if snapshot.machine.windows else scheduler.placement


def _window_end(snapshot: Snapshot) -> int | None:
    """Return the next end (ns) of a maintenance window, None without one."""
    return min((window.end for window in snapshot.machine.windows if window.end > snapshot.now), default=None)
