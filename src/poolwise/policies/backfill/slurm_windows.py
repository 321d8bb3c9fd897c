"""Reserved windows during a backfill pass of Slurm: the nodes that are closed to a job, and when the job is tried again.

Whenever ending runs would let a job start, Slurm 22.05 tests the job against the reservations that its time limit would
overlap, counted from the instant at which it is tried (`job_test_resv`). If some of these reserve nodes of its partition, the
job is tried again one second after the next reservation ends, rounded up to the resolution (`find_resv_end`). If maintenance
reserves the whole partition, the instant itself moves to the end of that reservation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.model import Job, Machine, ReservedWindow
from poolwise.policies.placement.avoid_windows import may_use
from poolwise.quantities import HORIZON, SECOND


@dataclass(frozen=True)
class BackfillWindows:
    """The windows of a machine in a backfill pass.

    Parameters
    ----------
    machine
        The machine.
    now
        Time of the pass (ns). Jobs that start now start at this time; all planned starts are in whole seconds.
    until
        End of the planning window (ns): jobs are not tried again from then on.
    resolution
        Time resolution of reservations (ns).
    """

    machine: Machine
    now: int
    until: int
    resolution: int

    def closed(self, begin: int, job: Job) -> BoolArray:
        """Return the owners that a job cannot use if it is tried from an instant (ns), (n_owner,)."""
        closed: BoolArray = np.zeros(self.machine.n_owner, dtype=np.bool_)
        for window in self._met(begin, job):
            closed |= window.owners
        return closed

    def opens(self, begin: int, job: Job, nodes: BoolArray) -> int:
        """Return the first instant (ns), not before `begin`, at which no window closes all of a job's nodes, (n_owner,)."""
        while ends := [window.end for window in self._met(begin, job) if not (nodes & ~window.owners).any()]:
            begin = max(ends)
        return begin

    def next_trial(self, begin: int) -> int | None:
        """Return when (ns) a job that would overlap a window from an instant (ns) on is tried again; None for never."""
        ends = [window.end for window in self.machine.windows if window.end >= begin]
        again = -(-min(ends) // self.resolution) * self.resolution + SECOND if ends else self.until
        return again if again < self.until else None

    def _met(self, begin: int, job: Job) -> list[ReservedWindow]:
        """Return the windows that a job may not use but would overlap if it started at an instant (ns), at the earliest now."""
        begin = max(begin, self.now)
        end = end_of_limit(begin, job)
        return [
            window for window in self.machine.windows if window.start < end and begin < window.end and not may_use(job, window)
        ]


def end_of_limit(begin: int, job: Job) -> int:
    """Return the end of a job's time limit (ns)."""
    return begin + min(job.requested, HORIZON - begin)
