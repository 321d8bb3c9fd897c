"""What a forecaster knows at one time: jobs that ended, run and wait; nothing of what comes later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.model import InitialRun, JobTable, Machine


@dataclass(frozen=True, eq=False)
class Situation:
    """A machine, its scheduler, and the jobs known at a time.

    Attributes
    ----------
    machine, scheduler, estimate : what decides; the estimate is what the scheduler believes of runtimes
    jobs : all jobs that are known, in the order (submit, id)
    now : ns
    ran : (n_job,) ns that jobs ran that have ended, and that jobs at work have run so far; 0 for all others
    ended : (n_job,) whether they have ended
    running : those at work, in the order of their starts; rows of `jobs`
    waiting : (k,) rows of `jobs`
    """

    machine: Machine
    scheduler: Scheduler
    estimate: PerformanceModel
    jobs: JobTable
    now: int
    ran: IntArray
    ended: BoolArray
    running: Sequence[InitialRun]
    waiting: IntArray

    @property
    def at_work(self) -> IntArray:
        """(k,) rows of the jobs at work."""
        return np.array([run.job for run in self.running], dtype=np.int64)
