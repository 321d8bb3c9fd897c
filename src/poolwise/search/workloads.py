"""The workloads on which candidates are tried, each laid out once a process."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.repeats import Repeats
from poolwise.errors import InputError
from poolwise.files.factory import models_of, scheduler_of
from poolwise.files.study import SchedulerSection
from poolwise.model import Workload
from poolwise.search.objectives import JobObjectives, fares_of, ran
from poolwise.studies.cells import Cell, workload_of
from poolwise.units import SECOND

HELD = 64
"""Workloads that a process keeps laid out."""


@dataclass(frozen=True, eq=False)
class Held:
    """A workload that is laid out, and what its jobs wait under FCFS without backfilling."""

    cell: Cell
    workload: Workload
    repeats: Repeats
    tau_s: float
    measured: IntArray
    fcfs_wait_s: FloatArray

    def fares(self, section: SchedulerSection) -> JobObjectives:
        """Measure how its jobs fare under a scheduler."""
        times = self.repeats.under(scheduler_of(section, self.cell.warm_up))
        return fares_of(times, self.fcfs_wait_s, self.workload, self.measured, self.tau_s)


@dataclass(frozen=True, eq=False)
class Span:
    """What guards against short traces look at: jobs measured, and the seconds between their first and last submission."""

    jobs: int
    seconds: float


def fares_on(cell: Cell, tau_s: float, sections: list[SchedulerSection]) -> list[JobObjectives]:
    """Measure how the jobs of a cell's workload fare under some schedulers; what any executor is given to do."""
    held = _held(cell.key, tau_s, cell)
    return [held.fares(section) for section in sections]


def span_of(cell: Cell, tau_s: float) -> Span:
    """Say how long the workload of a cell is."""
    held = _held(cell.key, tau_s, cell)
    submit = held.workload.submit[held.measured]
    return Span(len(submit), float(submit[-1] - submit[0]) / SECOND)


def _held(key: str, tau_s: float, cell: Cell) -> Held:
    return _lay_out(_Keyed(key, tau_s, cell))


@dataclass(frozen=True)
class _Keyed:
    """What a workload that is laid out depends on; the cell follows from its key."""

    key: str
    tau_s: float
    cell: Cell = field(compare=False)


@lru_cache(maxsize=HELD)
def _lay_out(which: _Keyed) -> Held:
    cell, tau_s = which.cell, which.tau_s
    workload = workload_of(cell)
    truth, estimate = models_of(cell.performance, cell.seed)
    believed = truth if estimate is None else estimate
    fcfs = scheduler_of(cell.baseline().scheduler, cell.warm_up)
    for part in (truth, believed):
        part.check(cell.machine, workload.table)
    parts = RunSpec(cell.machine, workload, fcfs, truth, believed, cell.seed, pass_per_event=cell.scheduler.pass_per_event)
    repeats = Repeats(parts)
    times = repeats.under(fcfs)
    measured = ran(times, cell.warm_up)
    if len(measured) < 2:
        raise InputError(
            f"{cell.trace.path}: fewer than two jobs are left to measure after a warm-up of {cell.warm_up}",
            field="measure.warm_up",
            remedy="shorten the warm-up or take more jobs",
        )
    wait = (times.start[measured] - workload.submit[measured]) / SECOND
    return Held(cell, workload, repeats, tau_s, measured, wait)
