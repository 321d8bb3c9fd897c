"""The state of a machine at one instant, as plain data from which engines can continue: running and waiting jobs."""

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
from poolwise.short_repr import fit_repr, short_repr


class InitialRun(NamedTuple):
    """All tasks of a job that started together before an instant and are still running.

    Attributes
    ----------
    job : row of the job table
    start : ns
    placement : resources that it holds

    Examples
    --------
    >>> import poolwise
    >>> poolwise.InitialRun(job=0, start=0, placement=poolwise.Placement.of([(0, 0, 0, 4)])).start
    0
    """

    job: int
    start: int
    placement: Placement

    def __repr__(self) -> str:
        return short_repr(self)


class Initial(NamedTuple):
    """The state from which an engine continues a workload.

    The engine begins with the ends of the runs that end at `now` and the arrivals of the jobs that were submitted by then and
    do not run; a scheduling pass follows. Jobs that ended before must not be in the workload.

    Attributes
    ----------
    now : ns
    runs : the running runs, in the order of their starts; rows of the workload
    """

    now: int
    runs: Sequence[InitialRun]

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, eq=False)
class MachineState:
    """The state of a machine at one instant: running and waiting jobs, without those that have ended.

    Attributes
    ----------
    machine : the machine
    jobs : table with the jobs that run or wait, and possibly others; times count from its `epoch`
    now : ns, the instant
    running : runs, in the order of their starts
    waiting : (k,) rows of the job table
    source : a few words on where the state comes from
    scheduler : scheduler file, or "catalog:NAME", that schedules the machine; empty if unknown

    Examples
    --------
    >>> import numpy as np, poolwise
    >>> machine = poolwise.Machine.flat(4)
    >>> table = poolwise.Workload.of(["0 s", "10 s"], "1 h", requests={"nodes": [3, 2]}).table
    >>> running = [poolwise.InitialRun(0, 0, poolwise.Placement.of([(0, 0, machine.resource("nodes"), 3)]))]
    >>> state = poolwise.MachineState(machine, table, 60 * 10**9, running, waiting=np.array([1]))
    >>> state.free()[0].tolist()
    [1, 0]
    """

    def __repr__(self) -> str:
        counts = f"{len(self.running):,} jobs run, {len(self.waiting):,} wait"
        text = f"MachineState of '{self.machine.name}' at {self.now} ns: {counts}"
        return fit_repr(f"{text} ({self.source})" if self.source else text)

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
            raise InputError(f"job {self.jobs.name(twice)} runs or waits twice", field="job", remedy="list each job once")
        if rows and not 0 <= min(rows) <= max(rows) < len(self.jobs):
            raise ValueError("a row is not in the job table")
        for run in self.running:
            submitted = int(self.jobs.submit[run.job])
            if not submitted <= run.start <= self.now:
                problem = f"job {self.jobs.name(run.job)} starts before its submission, or after the time of the state"
                raise InputError(problem, field="start_ns", remedy="count all times from the origin")
        for row in self.waiting.tolist():
            if int(self.jobs.submit[row]) > self.now:
                problem = f"job {self.jobs.name(row)} waits before its submission"
                raise InputError(problem, field="submit_ns", remedy="count all times from the origin")
        self.free()

    def free(self) -> IntArray:
        """Return the free amounts, (n_owner, n_resource); raises InputError if the runs hold more than the capacity."""
        free = self.machine.capacity.copy()
        for run in self.running:
            run.placement.take_from(free)
        if free.size and int(free.min()) < 0:
            owner, resource = (int(k) for k in np.unravel_index(int(free.argmin()), free.shape))
            problem = f"the runs hold more {self.machine.resources[resource]} than {self.machine.owners[owner]} has"
            raise InputError(problem, field="placement", remedy="correct the placements, or the machine")
        return free
