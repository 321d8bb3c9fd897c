"""Order mode: Slurm places and backfills, Poolwise says in which order, by priorities. Only those that changed are written."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher, QueuePolicy, Scheduler, opened, rule_of
from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import SlurmTimeoutError
from poolwise.live.slurm.parsing import most_cpus, read_jobs
from poolwise.live.slurm.platform import SlurmPlatform
from poolwise.live.slurm.poller import GANG
from poolwise.live.slurm.session import ScontrolPool
from poolwise.live.slurm.shadow_mode import may_start
from poolwise.model import Changes, CommitResult, Machine, Plan, Queue, Refusal, Snapshot, Wait
from poolwise.units import SECOND

LOWEST, HIGHEST = 1_000_000, 4_000_000_000
"""Priorities that are set; Slurm's own, below and above, stay free for administrators."""
AGAIN = 30 * SECOND
"""Priorities that follow from the time waited are looked at again after so many ns."""


@dataclass(frozen=True)
class Ranking(Scheduler):
    """The queue order of a scheduler alone: its plan starts nothing and names all that wait, the first first."""

    order: QueuePolicy

    @classmethod
    def of(cls, scheduler: Scheduler) -> Ranking:
        """Take the order of a scheduler; raises InputError for one that has none."""
        rule = rule_of(scheduler)
        if rule is None:
            problem = "order mode needs a scheduler that is a queue order with backfilling"
            raise InputError(problem, field="--scheduler", remedy="such as catalog:fm-easy, or use --mode place")
        return cls(rule.order)

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run."""
        return _RankingDispatcher(opened(self.order))


@dataclass
class _RankingDispatcher(Dispatcher):
    """A run of a ranking."""

    order: QueuePolicy

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Name all jobs in the order of their priorities, ties in the order of the queue."""
        priority = self.order.priority(queue, snapshot)
        ranked = queue.jobs[np.argsort(-priority, kind="stable")].tolist()
        return Plan(
            tuple(Wait(job, Refusal(f"{k:,} jobs are ahead of it")) for k, job in enumerate(ranked)), snapshot.now + AGAIN
        )


class OrderPlatform(SlurmPlatform):
    """Slurm decides which job starts where; the order of a plan's decisions becomes that of the priorities."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self._team = ScontrolPool()
        super().__init__(*given, **more)

    def waits(self, gang: GANG) -> bool:
        """Whether Slurm could start it now, had it the room."""
        return may_start(gang, self.table.epoch + self.now) and not any(job.held for job in gang)

    def commit(self, plan: Plan) -> CommitResult:
        """Write the priorities that have to change for the plan's order."""
        self.wake_at(plan.wake_at)
        names = [self.table.name(decision.job) for decision in plan.decisions if isinstance(decision, Wait)]
        gangs = self.reading.gangs
        now = [gangs[name][0].priority for name in names]
        changed = {name: new for name, old, new in zip(names, now, priorities(now), strict=True) if new != old}
        if changed:
            begun = time.monotonic()
            try:
                self._team.send([f"update JobId={name} Priority={value}" for name, value in changed.items()])
            except SlurmTimeoutError as error:
                log_event("silent", logging.WARNING, why=str(error))
            self._check(changed, time.monotonic() - begun)
        return CommitResult(plan.decisions)

    def _check(self, changed: dict[str, int], seconds: float) -> None:
        """Read again what was written; what is otherwise is written once more after the next reading."""
        try:
            shown = {job.name.partition("+")[0]: job for job in reversed(read_jobs(most_cpus(self.reading.nodes)))}
        except SlurmTimeoutError as error:
            log_event("silent", logging.WARNING, why=str(error))
            return
        missed = [
            n for n, value in changed.items() if n in shown and shown[n].state == "PENDING" and shown[n].priority != value
        ]
        log_event("ordered", changed=len(changed), missed=len(missed), seconds=round(seconds, 3))
        if missed:
            self.wake_at(self.now + SECOND)

    def close(self) -> None:
        """End the sessions with Slurm."""
        self._team.close()


def priorities(now: Sequence[int]) -> list[int]:
    """Priorities that fall strictly from job to job, as few as possible other than those that the jobs have now.

    Parameters
    ----------
    now
        Priorities of jobs in the order in which they are to start.

    Those between `LOWEST` and `HIGHEST` that already fall stay, as many as can; the others are spread evenly between them.
    Where there is no room, all are spread anew.
    """
    stay = _falling(now)
    found = list(now)
    edges = [-1, *stay, len(now)]
    for left, right in pairwise(edges):
        count = right - left - 1
        above = HIGHEST if left < 0 else now[left]
        below = LOWEST if right == len(now) else now[right]
        if count and above - below <= count:
            return _spread(HIGHEST, LOWEST, len(now))
        found[left + 1 : right] = _spread(above, below, count)
    return found


def _spread(above: int, below: int, count: int) -> list[int]:
    """Whole numbers between two others, falling, evenly apart."""
    return [above - (above - below) * k // (count + 1) for k in range(1, count + 1)]


def _falling(now: Sequence[int]) -> list[int]:
    """Positions of a longest strictly falling sequence of numbers between the bounds (patience sorting)."""
    tails: list[int] = []  # negated last number of the best sequence of each length
    ends: list[int] = []
    before: list[int] = [-1] * len(now)
    for k, value in enumerate(now):
        if not LOWEST < value < HIGHEST:
            continue
        at = bisect_left(tails, -value)
        before[k] = ends[at - 1] if at else -1
        tails[at : at + 1], ends[at : at + 1] = [-value], [k]
    found, k = list[int](), ends[-1] if ends else -1
    while k >= 0:
        found.append(k)
        k = before[k]
    return found[::-1]
