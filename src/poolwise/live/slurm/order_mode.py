"""Order mode: Slurm places and backfills jobs; Poolwise sets their priorities and writes only those that change."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher, QueuePolicy, Scheduler
from poolwise.interfaces.order import opened
from poolwise.interfaces.user_class import rule_of
from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import ScontrolPool, logged_timeouts
from poolwise.live.slurm.parsing import max_cpus, read_jobs
from poolwise.live.slurm.platform import SlurmPlatform
from poolwise.model import Changes, CommitResult, Decisions, Machine, Queue, Refusal, Snapshot, Wait
from poolwise.quantities import SECOND

LOWEST, HIGHEST = 1_000_000, 4_000_000_000
"""Bounds (exclusive) of the priorities that are set; priorities outside remain free for administrators."""
REORDER_INTERVAL = 30 * SECOND  # interval (ns) after which priorities that depend on waiting time are computed again


@dataclass(frozen=True)
class Ranking(Scheduler):
    """Scheduler that applies only the queue order of another scheduler: it lists the waiting jobs, and starts none."""

    order: QueuePolicy

    @classmethod
    def of(cls, scheduler: Scheduler) -> Ranking:
        """Build from the queue order of a scheduler; raises InputError if it has none."""
        rule = rule_of(scheduler)
        if rule is None:
            problem = "order mode requires a scheduler with a queue order and backfilling"
            raise InputError(problem, field="--scheduler", remedy="such as catalog:fm-easy, or use --mode place")
        return cls(rule.order)

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Open a dispatcher for a run."""
        return _RankingDispatcher(opened(self.order))


@dataclass
class _RankingDispatcher(Dispatcher):
    """Dispatcher of one run of a `Ranking`."""

    order: QueuePolicy

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """List all jobs by priority; ties keep the order of the queue."""
        priority = self.order.priority(queue, snapshot)
        ranked = queue.jobs[np.argsort(-priority, kind="stable")].tolist()
        return Decisions(
            tuple(Wait(job, Refusal(f"{k:,} jobs are ahead of it")) for k, job in enumerate(ranked)),
            snapshot.now + REORDER_INTERVAL,
        )


class OrderPlatform(SlurmPlatform):
    """Slurm decides when and where jobs start; the order of the decisions becomes the order of their priorities."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._scontrol = ScontrolPool()
        super().__init__(*args, **options)

    def commit(self, decisions: Decisions) -> CommitResult:
        """Write the priorities that must change to give the order of the decisions."""
        self.next_wakeup = decisions.next_wakeup
        names = [self.table.name(decision.job) for decision in decisions if isinstance(decision, Wait)]
        gangs = self.listing.gangs
        current = [gangs[name][0].priority for name in names]
        changed = {name: new for name, old, new in zip(names, current, priorities(current), strict=True) if new != old}
        if changed:
            started_at = time.monotonic()
            with logged_timeouts():
                self._scontrol.send([f"update JobId={name} Priority={value}" for name, value in changed.items()])
            self._verify_priorities(changed, time.monotonic() - started_at)
        return CommitResult(decisions.entries)

    def _verify_priorities(self, changed: dict[str, int], seconds: float) -> None:
        """Read the written priorities back; those that differ are written again after the next poll."""
        with logged_timeouts():
            shown = {job.name.partition("+")[0]: job for job in reversed(read_jobs(max_cpus(self.listing.nodes)))}
            missed = [
                n for n, value in changed.items() if n in shown and shown[n].state == "PENDING" and shown[n].priority != value
            ]
            log_event("priorities_written", changed=len(changed), missed=len(missed), seconds=round(seconds, 3))
            if missed:
                self.next_wakeup = self.now + SECOND

    def close(self) -> None:
        """Close the sessions with Slurm."""
        self._scontrol.close()


def priorities(current: Sequence[int]) -> list[int]:
    """Return strictly decreasing priorities that change as few of the current ones as possible; jobs are in order of start.

    A longest strictly decreasing subsequence between `LOWEST` and `HIGHEST` is kept; the other priorities are spaced evenly
    in between. If a gap is too small, all priorities are spaced again.
    """
    fixed = _longest_decreasing(current)
    spaced = list(current)
    edges = [-1, *fixed, len(current)]
    for left, right in pairwise(edges):
        count = right - left - 1
        above = HIGHEST if left < 0 else current[left]
        below = LOWEST if right == len(current) else current[right]
        if count and above - below <= count:
            return _evenly_spaced(HIGHEST, LOWEST, len(current))
        spaced[left + 1 : right] = _evenly_spaced(above, below, count)
    return spaced


def _evenly_spaced(above: int, below: int, count: int) -> list[int]:
    """Return `count` decreasing integers at even distances between two others."""
    return [above - (above - below) * k // (count + 1) for k in range(1, count + 1)]


def _longest_decreasing(current: Sequence[int]) -> list[int]:
    """Return the positions of a longest strictly decreasing subsequence within the bounds (patience sorting)."""
    tails: list[int] = []  # negated last number of the best subsequence of each length
    ends: list[int] = []
    before: list[int] = [-1] * len(current)
    for k, value in enumerate(current):
        if not LOWEST < value < HIGHEST:
            continue
        at = bisect_left(tails, -value)
        before[k] = ends[at - 1] if at else -1
        tails[at : at + 1], ends[at : at + 1] = [-value], [k]
    positions, k = list[int](), ends[-1] if ends else -1
    while k >= 0:
        positions.append(k)
        k = before[k]
    return positions[::-1]
