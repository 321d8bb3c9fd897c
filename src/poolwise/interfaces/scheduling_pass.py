"""One pass of a list scheduler: the state from which its policies decide, and the reasons that they record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from inspect import signature

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.interfaces.placement import PlacementPolicy
from poolwise.model import Placement, Queue, Reason, Refusal, Snapshot, Start, Stop, WaitCause

Preempt = Callable[["SchedulingPass", int, Snapshot], "tuple[Placement, tuple[Stop, ...]] | None"]
"""Function of a pass, a waiting job and a state in which it does not fit; returns stops and a placement that let it fit."""


@dataclass(frozen=True, slots=True, eq=False)
class SchedulingPass:
    """One pass of a list scheduler, from which backfill and admission decide. They must not change it.

    Attributes
    ----------
    queue : the waiting jobs
    priority : (n_queued,) priorities, higher first; ties go to the job that is earlier in the queue
    snapshot : the state now; `with_started` and `at` return imagined states
    placement : placement policy of the scheduler
    explain : rows of the waiting jobs whose wait is to be explained; empty in ordinary passes
    reasons : row -> reason recorded so far; if there are several reasons for one job, the last counts
    preempt : function that finds runs to stop for a job that does not fit; None without preemption
    stops : row -> stops that the job's latest placement by `place` requires; the scheduler adds them before the start

    Examples
    --------
    A backfill gets it in `select`. This one starts the first job only, and states why the others wait:

    >>> import poolwise
    >>> from poolwise.interfaces import BackfillPolicy, Refusal, WaitCause, Start
    >>> class FirstOnly(BackfillPolicy):
    ...     def select(self, cycle):
    ...         first, *others = cycle.ranked().tolist()
    ...         for job in others:
    ...             cycle.record(job, WaitCause.ORDER, "one job per pass", blocker=first)
    ...         found = cycle.place(first, cycle.snapshot)
    ...         return [] if isinstance(found, Refusal) else [Start(first, cycle.queue.tasks(first), found)]
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min")
    >>> scheduler = poolwise.ListScheduler(backfill=FirstOnly())
    >>> poolwise.explain_wait(workload, poolwise.Machine.flat(2), scheduler, job=2).episodes[0].reason.text
    'one job per pass'
    """

    queue: Queue
    priority: FloatArray
    snapshot: Snapshot
    placement: PlacementPolicy
    explain: frozenset[int] = frozenset()
    reasons: dict[int, Reason] = field(default_factory=dict)
    preempt: Preempt | None = None
    stops: dict[int, tuple[Stop, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<SchedulingPass at {self.snapshot.now:,} ns: {len(self.queue):,} jobs wait>"

    def ranked(self) -> IntArray:
        """Return the rows of the waiting jobs by priority, (n_queued,)."""
        return self.queue.jobs[np.argsort(-self.priority, kind="stable")]

    def place(self, job: int, snapshot: Snapshot) -> Placement | Refusal:
        """Place a waiting job in a state; a refusal is recorded as the reason why the job waits.

        With preemption, a job that does not fit now is placed as if the runs in `stops` had stopped.
        """
        answer = self.placement.place(self.queue.job(job), snapshot)
        self.stops.pop(job, None)
        if self.preempt is not None and isinstance(answer, Refusal) and snapshot.now == self.snapshot.now:
            preempted = self.preempt(self, job, snapshot)
            if preempted is not None:
                answer, self.stops[job] = preempted
        if job in self.explain and isinstance(answer, Refusal):
            self.record(job, WaitCause.SHORT, answer.reason, answer)
        return answer

    def prefilter(self, jobs: IntArray, snapshot: Snapshot) -> BoolArray:
        """Return a mask of jobs, (k,): False for those that surely do not fit in a state, unless they must be explained."""
        able = self.placement.prefilter(jobs, snapshot.free[None], snapshot)
        return able | np.isin(jobs, list(self.explain)) if self.explain else able

    def to_explain(self, starts: Iterable[Start] = ()) -> list[int]:
        """Return the rows of the jobs to explain that wait in the queue and are in none of the starts."""
        if not self.explain:
            return []
        left = self.explain.difference(start.job for start in starts)
        return [job for job in sorted(left) if job in self.queue]

    def record(
        self,
        job: int,
        cause: WaitCause,
        text: str,
        short: Refusal | None = None,
        *,
        blocker: int | None = None,
        reserved: int | None = None,
        blocker_needs: bool = False,
    ) -> None:
        """Record why a job waits, with the arguments of `Reason.of`; without effect for jobs that need not be explained."""
        if job in self.explain:
            self.reasons[job] = Reason.of(cause, text, short, blocker=blocker, reserved=reserved, blocker_needs=blocker_needs)


def check_takes_pass(policy: object, method: str) -> None:
    """Raise InputError unless a method of a policy takes one `SchedulingPass`."""
    taken = list(signature(getattr(policy, method)).parameters)
    if len(taken) != 1:
        raise InputError(
            f"{type(policy).__name__}.{method} takes ({', '.join(taken)}) instead of one SchedulingPass",
            remedy=f"define {method}(self, cycle) and read cycle.queue, cycle.priority, cycle.snapshot and cycle.placement",
        )
