"""List scheduling: combines a queue order, a backfill, a placement policy, an admission policy, and preemption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.interfaces import (
    AdmissionPolicy,
    BackfillPolicy,
    Dispatcher,
    ListRule,
    PlacementPolicy,
    PreemptionPolicy,
    PreparedOrder,
    QueuePolicy,
    Scheduler,
    SchedulingPass,
)
from poolwise.interfaces.order import checked_priorities, opened
from poolwise.interfaces.placement import signatures_of
from poolwise.interfaces.scheduling_pass import check_takes_pass
from poolwise.model import (
    Changes,
    Decisions,
    JobTable,
    Machine,
    Queue,
    Reason,
    Refusal,
    Reject,
    Snapshot,
    Start,
    Stop,
    Wait,
    WaitCause,
)
from poolwise.model.eligibility import has_tiers, tiers
from poolwise.policies.admission.machine_limits import MachineLimits
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import start_in_order
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.avoid_windows import AvoidWindows
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.quantities import format_time, to_seconds
from poolwise.registry import register
from poolwise.schedulers.fitting import NEVER_FITS, Fitting
from poolwise.schedulers.preempting import place_by_stopping
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
    preemption
        Preemption, by which waiting jobs stop runs; none by default. Jobs may preempt in priority order, up to the heads.

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
    preemption: PreemptionPolicy | None = None

    @property
    def supports_partitions(self) -> bool:
        """True if the placement supports node restrictions of jobs."""
        return self.placement.filters_nodes

    @property
    def preempts(self) -> bool:
        """True with a preemption policy."""
        return self.preemption is not None

    @property
    def keeps_state(self) -> str:
        """State that the backfill keeps between passes."""
        return self.backfill.keeps_state

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Start a run; list scheduling uses no random numbers."""
        return ListDispatcher(self._opened())

    def _opened(self) -> Self:
        """Return the scheduler with the order and the backfill of one run."""
        check_takes_pass(self.backfill, "select")
        check_takes_pass(self.admission, "admits")
        return replace(self, order=opened(self.order), backfill=self.backfill.open())

    def rule(self) -> ListRule | None:
        """Return order, backfill and placement; None with preemption, or an admission other than the machine's limits."""
        if self.admission != MachineLimits() or self.preemption is not None:
            return None
        return ListRule(self.order, self.backfill, self.placement)

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the machine and the jobs with the order, the placement, the backfill, the admission and the preemption."""
        if isinstance(self.order, PreparedOrder):
            self.order.check(machine, jobs)
        self.placement.check(machine, jobs)
        self.backfill.check(machine, jobs)
        self.admission.check(machine, jobs)
        if self.preemption is not None:
            self.preemption.check(machine, jobs)


@dataclass
class ListDispatcher(Dispatcher):
    """State of a run of a list scheduler; jobs that do not fit on the empty machine or are never admitted are cached."""

    scheduler: ListScheduler
    fitting: Fitting = field(default_factory=Fitting)
    barred: Fitting = field(default_factory=Fitting)
    _last_unfit: tuple[dict[int, Refusal], tuple[Wait, ...]] = field(default=({}, ()), repr=False)

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Reject jobs that are never admitted or do not fit on the empty machine; if there are none, choose starts."""
        delayed = self._delayed(queue, snapshot)
        if not delayed:
            return self._schedule(queue, snapshot, changes)
        decisions = self._schedule(queue.only(np.setdiff1d(queue.jobs, list(delayed))), snapshot, changes)
        wakeup = min(time for time in (decisions.next_wakeup, *delayed.values()) if time is not None)
        texts = {
            job: f"it was requeued, and may start in {format_time(to_seconds(delayed[job] - snapshot.now))}" for job in delayed
        }
        reasons = {job: Reason(WaitCause.LIMIT, texts[job]) for job in changes.explain.intersection(delayed)}
        return replace(decisions, next_wakeup=wakeup, reasons={**decisions.reasons, **reasons})

    def _delayed(self, queue: Queue, snapshot: Snapshot) -> dict[int, int]:
        """Return row -> time (ns) of the jobs that cannot start before it, because they were requeued."""
        policy, history = self.scheduler.preemption, snapshot.history
        if policy is None or history is None or not policy.requeue_delay:
            return {}
        first = int(np.searchsorted(history.end, snapshot.now - policy.requeue_delay, side="right"))
        ended = zip(history.job[first:].tolist(), history.end[first:].tolist(), strict=True)
        return {job: end + policy.requeue_delay for job, end in ended if job in queue}

    def _schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Decide on the jobs that were not requeued recently."""
        barred = self.barred.refusals(queue, snapshot, self.scheduler.admission.never)
        never = self.fitting.refusals(queue, snapshot, self._refusal, self._signatures)
        rejects = {job: refusal.reason for job, refusal in barred.items()}
        if not snapshot.may_grow:
            rejects = {**{job: f"{NEVER_FITS}: {refusal.reason}" for job, refusal in never.items()}, **rejects}
        if rejects:
            again = self._next_wakeup(snapshot) if len(rejects) < len(queue) else None
            return Decisions(tuple(Reject(job, reason) for job, reason in rejects.items()), again)
        unfit = self._unfit(never)
        if never:
            queue = queue.only(np.setdiff1d(queue.jobs, list(never)))
        if not len(queue):
            return Decisions(unfit)
        backfill, placement = self.scheduler.backfill, _placement(self.scheduler, snapshot)
        preempts = self.scheduler.preemption is not None and snapshot.n_run > 0
        fits = preempts or backfill.every_cycle or bool(placement.prefilter(queue.jobs, snapshot.free[None], snapshot).any())
        if not fits and not changes.explain:  # no job fits, so no order can start any
            return Decisions(unfit, _window_end(snapshot))
        cycle = SchedulingPass(queue, self._priority(queue, snapshot), snapshot, placement, changes.explain)
        chosen = self._chosen(cycle)
        starts = tuple(decision for decision in chosen if isinstance(decision, Start))
        stopped = [decision.run for decision in chosen if isinstance(decision, Stop)]
        after = (snapshot.without(stopped) if stopped else snapshot).with_starts(starts) if cycle.explain else snapshot
        reasons = {job: self._reason(cycle, job, starts, after) for job in cycle.to_explain(starts)}
        if not fits:
            return Decisions(unfit, _window_end(snapshot), reasons)
        return Decisions((*unfit, *chosen), self._next_wakeup(snapshot, cycle) if len(starts) < len(queue) else None, reasons)

    def _unfit(self, never: dict[int, Refusal]) -> tuple[Wait, ...]:
        """Return the waiting jobs that do not fit on the empty machine, with reasons; reuse an equal last result."""
        if never != self._last_unfit[0]:
            self._last_unfit = never, tuple(Wait(job, refusal) for job, refusal in never.items())
        return self._last_unfit[1]

    def _next_wakeup(self, snapshot: Snapshot, cycle: SchedulingPass | None = None) -> int | None:
        """Return the next time at which backfill or preemption needs a pass or a maintenance window ends."""
        times = [self.scheduler.backfill.next_wakeup(snapshot.now), _window_end(snapshot)]
        if cycle is not None and self.scheduler.preemption is not None:
            times.append(self.scheduler.preemption.next_wakeup(cycle))
        return min((time for time in times if time is not None), default=None)

    def _chosen(self, cycle: SchedulingPass) -> tuple[Stop | Start, ...]:
        """Return the backfill's choice among admitted jobs, with the stops that a start needs before it.

        The backfill chooses again once a start bars another job, or needs stops.
        """
        policy, admitted = self.scheduler.preemption, self._admitted(cycle)
        if admitted is None and policy is None:
            return tuple(self.scheduler.backfill.select(cycle))
        if policy is not None:
            cycle = replace(cycle, preempt=partial(place_by_stopping, policy))
        cycle = cycle if admitted is None else _only(cycle, admitted)
        chosen, again = list[Stop | Start](), True
        while again and len(cycle.queue):
            again = False
            for start in self._selected(cycle):
                stops, state = cycle.stops.pop(start.job, ()), cycle.snapshot
                chosen += [*stops, start]
                if stops:
                    state = state.without(stop.run for stop in stops)
                rest = _only(cycle, cycle.queue.jobs != start.job)
                cycle = replace(rest, snapshot=state.with_started(start.job, start.placement, start.tasks))
                admitted = self._admitted(cycle)
                if stops or (admitted is not None and not admitted.all()):
                    cycle.stops.clear()
                    cycle, again = cycle if admitted is None else _only(cycle, admitted), True
                    break
        return tuple(chosen)

    def _selected(self, cycle: SchedulingPass) -> Iterator[Start]:
        """Yield the backfill's choice, after the jobs in priority order up to one that can start by stopping runs."""
        backfill = self.scheduler.backfill
        if cycle.preempt is not None and not backfill.chooses_preemptors:
            ahead, _, _ = start_in_order(cycle, getattr(backfill, "heads", "partition"))
            last = next((k for k, start in enumerate(ahead) if start.job in cycle.stops), None)
            if last is not None:
                yield from ahead[: last + 1]
                return
            cycle = replace(cycle, preempt=None)
        yield from backfill.select(cycle)

    def _admitted(self, cycle: SchedulingPass) -> BoolArray | None:
        """Return a mask of the admitted waiting jobs, (n_queued,), or None for all; record why the others are not admitted."""
        admission = self.scheduler.admission
        admitted = admission.admits(cycle)
        if admitted is not None and cycle.explain:
            for job in cycle.explain.intersection(cycle.queue.jobs[~admitted].tolist()):
                if job not in cycle.reasons or cycle.reasons[job].cause is not WaitCause.LIMIT:
                    cycle.record(job, WaitCause.LIMIT, f"{type(admission).__name__} does not admit it")
        return admitted

    def _reason(self, cycle: SchedulingPass, job: int, starts: tuple[Start, ...], after: Snapshot) -> Reason:
        """Return the recorded reason, by default the job's shortage after all starts, with the number of jobs ahead of it."""
        if job not in cycle.reasons and not isinstance(cycle.place(job, after), Refusal):
            cycle.record(job, WaitCause.UNREPORTED, f"it fits, and {type(self.scheduler.backfill).__name__} gives no reason")
        ranked = cycle.ranked()
        before = ranked[: int(np.flatnonzero(ranked == job)[0])]
        ahead = np.count_nonzero(~np.isin(before, [start.job for start in starts]))
        return replace(cycle.reasons[job], ahead=int(ahead))

    def _priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the priorities, (n_queued,); ranks by tier and priority if partitions have different tiers."""
        order, n = self.scheduler.order, len(queue)
        priority = checked_priorities(order, order.priority(queue, snapshot), n)
        if has_tiers(snapshot.machine):
            ranked = np.lexsort((-priority, -tiers(snapshot.machine, queue.table)[queue.jobs]))  # stable
            priority = np.empty(n)
            priority[ranked] = -np.arange(n)
        preemption = self.scheduler.preemption
        if preemption is None:
            return priority
        return checked_priorities(preemption, preemption.reprioritize(priority, queue, snapshot), n)

    def _signatures(self, snapshot: Snapshot) -> IntArray | None:
        return signatures_of(self.scheduler.placement, snapshot.machine, snapshot.table)

    def _refusal(self, job: int, empty: Snapshot) -> Refusal | None:
        placement = self.scheduler.placement.place(empty.table.job(job), empty)
        return placement if isinstance(placement, Refusal) else None


def _only(cycle: SchedulingPass, which: BoolArray) -> SchedulingPass:
    """Return the pass with the selected jobs only, (n_queued,)."""
    return replace(cycle, queue=cycle.queue.only(cycle.queue.jobs[which]), priority=cycle.priority[which])


def _placement(scheduler: ListScheduler, snapshot: Snapshot) -> PlacementPolicy:
    """Return the scheduler's placement, extended to avoid maintenance windows if the machine has any."""
    return AvoidWindows(scheduler.placement) if snapshot.machine.windows else scheduler.placement


def _window_end(snapshot: Snapshot) -> int | None:
    """Return the next end (ns) of a maintenance window, None without one."""
    return min((window.end for window in snapshot.machine.windows if window.end > snapshot.now), default=None)
