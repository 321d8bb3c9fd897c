"""Scheduler that replays a recorded schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import PolicyError
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Decisions, Machine, Placement, Queue, Reject, Schedule, Snapshot, Start
from poolwise.quantities import NEVER
from poolwise.schedulers.warm_up import warm_up_end


@dataclass(frozen=True, eq=False)
class Replay(Scheduler):
    """Starts each job at the recorded time and place. The cost of a pass depends only on the number of its starts.

    Supports jobs of one task that run once to completion, as the compiled engine runs them.

    Parameters
    ----------
    schedule
        Recorded schedule.
    warm_up
        Number of warm-up jobs in the recorded run. Later jobs that can never run were rejected at the end of the warm-up; all
        others on arrival.
    """

    schedule: Schedule
    warm_up: int = 0

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Start a replay at the beginning of the record."""
        return _ReplayDispatcher(self.schedule, self._rejection_times())

    def _rejection_times(self) -> list[tuple[int, int]]:
        """Return the (ns, row) of each rejection, in time order."""
        submit, rejected, count = self.schedule.workload.submit, self.schedule.rejected, self.warm_up
        never = any(row < count for row in self.schedule.waiting)
        over = NEVER if never else warm_up_end(count, self.schedule.job_start)
        return sorted((int(submit[row]) if row < count else max(int(submit[row]), over), row) for row in rejected)


@dataclass
class _ReplayDispatcher(Dispatcher):
    schedule_: Schedule
    rejections: list[tuple[int, int]]  # (ns, row), in time order
    started: int = 0  # number of recorded runs that have started
    rejected: int = 0  # number of rejections that have been decided

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Return the decisions recorded for this instant; raise PolicyError if a recorded start is in the past."""
        record, now = self.schedule_, snapshot.now
        decisions: list[Reject | Start] = []
        while self.rejected < len(self.rejections) and self.rejections[self.rejected][0] <= now:
            row = self.rejections[self.rejected][1]
            decisions.append(Reject(row, record.rejected[row]))
            self.rejected += 1
        first, end = self.started, int(np.searchsorted(record.start, now, side="right"))
        if first < end and int(record.start[first]) < now:
            raise PolicyError(f"the replay reached {now} ns, past the recorded start of the job in row {record.job[first]}")
        self.started = end
        decisions.extend(Start(int(record.job[run]), (0,), self._placement(run)) for run in range(first, end))
        following = int(record.start[end]) if end < record.n_run else None  # it may be a pass without an event
        return Decisions(tuple(decisions), following)

    def _placement(self, run: int) -> Placement:
        record = self.schedule_
        rows = slice(int(record.offset[run]), int(record.offset[run + 1]))
        owner: IntArray = record.owner[rows]
        return Placement(np.zeros_like(owner), owner, record.resource[rows], record.amount[rows])
