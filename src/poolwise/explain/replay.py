"""A scheduler that replays a recorded schedule without deciding anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import PolicyError
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Machine, Placement, Plan, Queue, Reject, Schedule, Snapshot, Start
from poolwise.schedulers.warm_up import warm_up_end
from poolwise.units import NEVER


@dataclass(frozen=True, eq=False)
class Replay(Scheduler):
    """Starts each job when and where a schedule records; a pass costs only its starts.

    Supports jobs of one task that run once to their end, as the compiled engine does.

    Parameters
    ----------
    schedule
        Recorded schedule.
    warm_up
        Number of warm-up jobs of the recorded run. Later jobs that can never run were rejected at its end, others at
        their arrival.
    """

    schedule: Schedule
    warm_up: int = 0

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Open a replay."""
        return _ReplayDispatcher(self.schedule, self._turned_away())

    def _turned_away(self) -> list[tuple[int, int]]:
        """(ns, row) of the rejections, in order."""
        submit, rejected, count = self.schedule.workload.submit, self.schedule.rejected, self.warm_up
        never = any(row < count for row in self.schedule.waiting)
        over = NEVER if never else warm_up_end(count, self.schedule.job_start)
        return sorted((int(submit[row]) if row < count else max(int(submit[row]), over), row) for row in rejected)


@dataclass
class _ReplayDispatcher(Dispatcher):
    schedule_: Schedule
    rejects: list[tuple[int, int]]
    started: int = 0  # recorded runs that have started
    turned_away: int = 0

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Return the recorded decisions of this instant; raise PolicyError if the clock passed a recorded decision."""
        record, now = self.schedule_, snapshot.now
        decisions: list[Reject | Start] = []
        while self.turned_away < len(self.rejects) and self.rejects[self.turned_away][0] <= now:
            row = self.rejects[self.turned_away][1]
            decisions.append(Reject(row, record.rejected[row]))
            self.turned_away += 1
        first, end = self.started, int(np.searchsorted(record.start, now, side="right"))
        if first < end and int(record.start[first]) < now:
            raise PolicyError(f"the replay reached {now} ns, past the recorded start of the job in row {record.job[first]}")
        self.started = end
        decisions.extend(Start(int(record.job[run]), (0,), self._placement(run)) for run in range(first, end))
        return Plan(tuple(decisions))

    def _placement(self, run: int) -> Placement:
        record = self.schedule_
        rows = slice(int(record.offset[run]), int(record.offset[run + 1]))
        owner: IntArray = record.owner[rows]
        return Placement(np.zeros_like(owner), owner, record.resource[rows], record.amount[rows])
