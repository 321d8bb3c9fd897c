"""Fill the machine under one scheduler, then hand over to another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Machine, Plan, Queue, Reject, Snapshot, Start, Workload
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FCFS
from poolwise.schedulers.list import ListScheduler


@dataclass(frozen=True)
class WarmUp(Scheduler):
    """The first `jobs` submitted jobs run under `first`; when the last of them has started, `then` takes over.

    Later jobs wait until then. Source: Li et al., Table I (3000 jobs, FCFS without backfilling).
    """

    then: Scheduler
    jobs: int = 3000
    first: Scheduler = field(default_factory=lambda: ListScheduler(order=FCFS(), backfill=NoBackfill()))

    @classmethod
    def before(cls, then: ListScheduler, jobs: int) -> WarmUp:
        """Warm up under FCFS without backfilling, with the placement of the list scheduler that takes over."""
        return cls(then, jobs, replace(then, order=FCFS(), backfill=NoBackfill()))

    def open(self, machine: Machine, workload: Workload, seed: int) -> Dispatcher:
        """Begin a run."""
        return _WarmUpDispatcher(self.jobs, self.first.open(machine, workload, seed), self.then.open(machine, workload, seed))


@dataclass
class _WarmUpDispatcher(Dispatcher):
    jobs: int
    first: Dispatcher
    then: Dispatcher
    over: bool = False  # a cache: the queue and the clock tell the same

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Delegate; in the pass in which the last warm-up job starts, `then` goes on from there."""
        if self.over:
            return self.then.schedule(queue, snapshot, changes)
        warm = queue.only(queue.jobs[queue.jobs < self.jobs])
        plan = self.first.schedule(warm, snapshot, replace(changes, arrived=tuple(j for j in changes.arrived if j < self.jobs)))
        settled = [d.job for d in plan.decisions if isinstance(d, Start | Reject)]
        for decision in plan.decisions:
            if isinstance(decision, Start):
                snapshot = snapshot.with_started(decision.job, decision.placement, decision.tasks)
        last = min(self.jobs, len(snapshot.table)) - 1
        submitted = last < 0 or int(snapshot.table.submit[last]) <= snapshot.now
        later = queue.only(queue.jobs[queue.jobs >= self.jobs])
        late = replace(changes, arrived=tuple(j for j in changes.arrived if j >= self.jobs))
        if submitted and not set(warm.jobs.tolist()) - set(settled):
            self.over = True
            rest = self.then.schedule(later, snapshot, replace(late, arrived=tuple(later.jobs.tolist())))
            return Plan((*plan.decisions, *rest.decisions), rest.wake_at)
        return plan


def warm_up_end(jobs: int, starts: np.ndarray) -> int:
    """Ns at which the last of the first `jobs` jobs started; `starts` (n_job,) with -1 for jobs that never did."""
    warm = starts[:jobs]
    return int(warm.max()) if len(warm) and int(warm.max()) >= 0 else 0
