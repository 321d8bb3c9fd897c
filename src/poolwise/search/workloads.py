"""Workloads of a search, prepared once per process."""

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
from poolwise.search.objectives import JobObjectives, job_objectives, ran
from poolwise.studies.cells import Cell, workload_of
from poolwise.units import SECOND

MAX_PREPARED = 64
"""Maximum number of prepared workloads that a process caches."""


@dataclass(frozen=True, eq=False)
class PreparedWorkload:
    """A prepared workload, and the waits of its jobs under FCFS without backfilling."""

    cell: Cell
    workload: Workload
    repeats: Repeats
    tau_s: float
    measured: IntArray
    fcfs_wait_s: FloatArray

    def evaluate(self, section: SchedulerSection) -> JobObjectives:
        """Compute the objectives of its jobs under a scheduler."""
        times = self.repeats.under(scheduler_of(section, self.cell.warm_up))
        return job_objectives(times, self.fcfs_wait_s, self.workload, self.measured, self.tau_s)


@dataclass(frozen=True, eq=False)
class Span:
    """Size of a workload, used to detect short traces: jobs measured, and seconds from first to last submission."""

    jobs: int
    seconds: float


def evaluate_schedulers(cell: Cell, tau_s: float, sections: list[SchedulerSection]) -> list[JobObjectives]:
    """Compute the objectives of a cell's workload under each scheduler."""
    prepared = _prepared(cell.key, tau_s, cell)
    return [prepared.evaluate(section) for section in sections]


def span_of(cell: Cell, tau_s: float) -> Span:
    """Return the size of a cell's workload."""
    prepared = _prepared(cell.key, tau_s, cell)
    submit = prepared.workload.submit[prepared.measured]
    return Span(len(submit), float(submit[-1] - submit[0]) / SECOND)


def _prepared(key: str, tau_s: float, cell: Cell) -> PreparedWorkload:
    return _prepare(_CacheKey(key, tau_s, cell))


@dataclass(frozen=True)
class _CacheKey:
    """Cache key of a prepared workload; the cell follows from its key."""

    key: str
    tau_s: float
    cell: Cell = field(compare=False)


@lru_cache(maxsize=MAX_PREPARED)
def _prepare(cache_key: _CacheKey) -> PreparedWorkload:
    cell, tau_s = cache_key.cell, cache_key.tau_s
    workload = workload_of(cell)
    truth, estimate = models_of(cell.performance, cell.seed)
    estimate = truth if estimate is None else estimate
    fcfs = scheduler_of(cell.baseline().scheduler, cell.warm_up)
    for part in (truth, estimate):
        part.check(cell.machine, workload.table)
    parts = RunSpec(cell.machine, workload, fcfs, truth, estimate, cell.seed, pass_per_event=cell.scheduler.pass_per_event)
    repeats = Repeats(parts)
    times = repeats.under(fcfs)
    measured = ran(times, cell.warm_up)
    if len(measured) < 2:
        raise InputError(
            f"{cell.trace.path}: fewer than two jobs remain to measure after a warm-up of {cell.warm_up} jobs",
            field="measure.warm_up",
            remedy="shorten the warm-up or take more jobs",
        )
    wait = (times.start[measured] - workload.submit[measured]) / SECOND
    return PreparedWorkload(cell, workload, repeats, tau_s, measured, wait)
