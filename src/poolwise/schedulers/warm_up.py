"""Warm-up: one scheduler fills the machine, then another takes over."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.interfaces import Dispatcher, ListRule, Scheduler
from poolwise.interfaces.user_class import rule_of
from poolwise.model import Changes, Decisions, JobTable, Machine, Queue, Reason, Reject, Snapshot, Start, WaitCause
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FCFS
from poolwise.schedulers.list import ListScheduler

WITHOUT_BACKFILL = NoBackfill(heads="machine")
"""Backfill of warm-ups: all jobs wait behind a single head, also on machines with partitions."""


@dataclass(frozen=True)
class WarmUp(Scheduler):
    """Runs the first `jobs` submitted jobs under `first`; once the last of them has started, `then` takes over.

    Later jobs wait until then. Source: Li et al., Table I (3000 jobs, FCFS without backfilling).
    """

    then: Scheduler
    jobs: int = 3000
    first: Scheduler = field(default_factory=lambda: ListScheduler(order=FCFS(), backfill=WITHOUT_BACKFILL))

    @classmethod
    def before(cls, then: ListScheduler, jobs: int) -> WarmUp:
        """Return a warm-up under FCFS without backfilling and preemption, with the placement of the scheduler that follows."""
        return cls(then, jobs, replace(then, order=FCFS(), backfill=WITHOUT_BACKFILL, preemption=None))

    def rule(self) -> ListRule | None:
        """Return the rule of `then` with a warm-up, if the warm-up is FCFS without backfilling and with the same placement."""
        rule = rule_of(self.then)
        if rule is None or rule.warm_up or rule_of(self.first) != ListRule(FCFS(), WITHOUT_BACKFILL, rule.placement):
            return None
        return rule._replace(warm_up=self.jobs)

    @property
    def supports_partitions(self) -> bool:
        """True if both schedulers support node restrictions."""
        return self.first.supports_partitions and self.then.supports_partitions

    @property
    def resizes(self) -> bool:
        """True if either scheduler resizes running jobs."""
        return self.first.resizes or self.then.resizes

    @property
    def preempts(self) -> bool:
        """True if either scheduler stops running jobs."""
        return self.first.preempts or self.then.preempts

    @property
    def keeps_state(self) -> str:
        """State kept between passes: whether the warm-up is over, which matters if one of its jobs is requeued."""
        return "that the warm-up is over"

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Open both schedulers."""
        return _WarmUpDispatcher(self.jobs, self.first.open(machine, seed), self.then.open(machine, seed))

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the machine and the jobs with both schedulers."""
        self.first.check(machine, jobs)
        self.then.check(machine, jobs)


@dataclass
class _WarmUpDispatcher(Dispatcher):
    jobs: int
    first: Dispatcher
    then: Dispatcher
    _over: bool = False
    _first: set[int] = field(default_factory=set)  # ids: live platforms give the rows of finished jobs to later ones

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Delegate to a scheduler; in the pass that starts the last warm-up job, `then` schedules the remaining jobs."""
        table = queue.table
        if self._over:
            return self.then.schedule(queue, snapshot, changes)
        early = self._early(table)
        warm, later = _parts(queue, early)
        decisions = self.first.schedule(warm, snapshot, _of(changes, early))
        settled = {d.job for d in decisions if isinstance(d, Start | Reject)}
        reasons = {job: decisions.reason(job, self.first) for job in changes.explain if job in warm and job not in settled}
        if len(self._first) < self.jobs or settled < set(warm.jobs.tolist()):
            filling = Reason(WaitCause.WARM_UP, "warm-up jobs have not all started", ahead=len(warm) - len(settled))
            return replace(
                decisions, reasons=reasons | dict.fromkeys(changes.explain.intersection(later.jobs.tolist()), filling)
            )
        self._over = True
        snapshot = snapshot.with_starts(decisions.starts)
        late = _of(changes, ~early)
        rest = self.then.schedule(later, snapshot, late)
        rejects = [decision for decision in rest if isinstance(decision, Reject)]
        if rejects:
            stay = np.setdiff1d(later.jobs, [decision.job for decision in rejects])
            rest = self.then.schedule(later.only(stay), snapshot, late)
        reasons |= {job: rest.reason(job, self.then) for job in changes.explain if job in later}
        return Decisions((*decisions, *rejects, *rest), rest.next_wakeup, reasons)

    def _early(self, table: JobTable) -> BoolArray:
        """Return a mask of the first jobs by submission and id, (n_job,)."""
        if len(self._first) < self.jobs:
            ids = table.id[np.lexsort((table.id, table.submit))].tolist()
            new = [job for job in ids if job not in self._first]
            self._first.update(new[: self.jobs - len(self._first)])
        return np.isin(table.id, np.fromiter(self._first, dtype=np.int64, count=len(self._first)))


def _parts(queue: Queue, early: BoolArray) -> tuple[Queue, Queue]:
    """Return a queue of the jobs that are `early`, (n_job,), and a queue of the others."""
    which = early[queue.jobs]
    return queue.only(queue.jobs[which]), queue.only(queue.jobs[~which])


def _of(changes: Changes, which: BoolArray) -> Changes:
    """Return the changes with only the selected arrivals."""
    return replace(changes, arrived=tuple(job for job in changes.arrived if which[job]))


def warm_up_end(jobs: int, starts: np.ndarray) -> int:
    """Return the time (ns) at which the last of the first `jobs` jobs started.

    `starts` (n_job,) is -1 for jobs that never started.
    """
    warm = starts[:jobs]
    return int(warm.max()) if len(warm) and int(warm.max()) >= 0 else 0
