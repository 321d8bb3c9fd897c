"""A machine at work at one instant: what runs where since when, and what waits. Plain data, from which engines go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray, frozen
from poolwise.errors import InputError
from poolwise.model.job_table import JobTable
from poolwise.model.machine import Machine
from poolwise.model.placement import Placement


class InitialRun(NamedTuple):
    """All tasks of a job that were started together before an instant, and are still at work.

    Attributes
    ----------
    job : row of the job table
    start : ns
    placement : what it holds
    """

    job: int
    start: int
    placement: Placement


class Initial(NamedTuple):
    """From where an engine goes on with a workload.

    What ends at `now` ends, what was submitted by then and does not run arrives, and a pass is made; what ended before has no
    place in the workload.

    Attributes
    ----------
    now : ns
    runs : those at work, in the order of their starts; rows of the workload
    """

    now: int
    runs: Sequence[InitialRun]


@dataclass(frozen=True, eq=False)
class MachineState:
    """A machine at an instant. What has ended is forgotten.

    Attributes
    ----------
    machine : the machine
    jobs : those that run or wait, beside others; its `epoch` is ns since 1970 of time 0, from which all times count
    now : ns, the instant
    running : in the order of their starts
    waiting : (k,) rows of the job table
    source : where it was seen, in a few words
    scheduler : scheduler file, or catalog:NAME, that decides there; empty where nobody knows
    """

    machine: Machine
    jobs: JobTable
    now: int
    running: Sequence[InitialRun]
    waiting: IntArray
    source: str = ""
    scheduler: str = ""

    def __post_init__(self) -> None:
        frozen(self.waiting)
        rows = [run.job for run in self.running] + self.waiting.tolist()
        if len(set(rows)) < len(rows):
            twice = next(row for row in rows if rows.count(row) > 1)
            raise InputError(f"job {self.jobs.name(twice)} runs or waits twice", field="job", remedy="write each job once")
        if rows and not 0 <= min(rows) <= max(rows) < len(self.jobs):
            raise ValueError("a row is not in the job table")
        for run in self.running:
            submitted = int(self.jobs.submit[run.job])
            if not submitted <= run.start <= self.now:
                problem = f"job {self.jobs.name(run.job)} starts before it is submitted, or after the state was seen"
                raise InputError(problem, field="start_ns", remedy="count all times from the origin")
        for row in self.waiting.tolist():
            if int(self.jobs.submit[row]) > self.now:
                problem = f"job {self.jobs.name(row)} waits before it is submitted"
                raise InputError(problem, field="submit_ns", remedy="count all times from the origin")
        self.free()

    def free(self) -> IntArray:
        """(n_owner, n_resource) what the runs leave free; raises InputError where they hold more than there is."""
        free = self.machine.capacity.copy()
        for run in self.running:
            run.placement.take_from(free)
        if free.size and int(free.min()) < 0:
            owner, resource = (int(k) for k in np.unravel_index(int(free.argmin()), free.shape))
            problem = f"the runs hold more {self.machine.resources[resource]} than {self.machine.owners[owner]} has"
            raise InputError(problem, field="placement", remedy="correct the placements, or the machine")
        return free
