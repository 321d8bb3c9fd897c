"""Evaluation of orders on workloads: one cell per candidate and workload, of which only the objectives are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.repeats import Repeats
from poolwise.errors import InputError
from poolwise.files.factory import models_of, scheduler_of
from poolwise.files.study import SchedulerSection
from poolwise.model import Workload
from poolwise.quantities import SECOND
from poolwise.runner import Record, Store, TaskRunner
from poolwise.search.objectives import JobObjectives, job_objectives, ran
from poolwise.search.problem import OrderCandidate, OrderSearchProblem, SplitName
from poolwise.studies.cell_simulation import CellMeasurement
from poolwise.studies.cells import Cell, workload_of

MAX_PREPARED = 64
"""Maximum number of prepared workloads that a process caches."""


@dataclass(frozen=True)
class Evaluations(CellMeasurement):
    """Measures the objectives of a cell; `tau_s` is the minimum run time in the bounded slowdown, s.

    Cells that differ only in the scheduler run in one process, which prepares their workload once.
    """

    tau_s: float

    def label(self, task: Cell) -> str:
        """Return the workload, the order and the seed."""
        return f"{task.workload.path} {task.scheduler.order or task.scheduler.kind} {task.label}"

    def group(self, task: Cell) -> str:
        """Return the key of the workload."""
        return _Workload.of(task).key

    def run(self, task: Cell) -> Record:
        """Measure the objectives of a cell."""
        return Record(evaluate(task, self.tau_s)._asdict())


def evaluate(cell: Cell, tau_s: float) -> JobObjectives:
    """Compute the objectives of a cell; the process prepares each workload once and then reuses it."""
    on = _prepare(_Workload.of(cell))
    times = on.repeats.under(scheduler_of(cell.scheduler, cell.warm_up))
    return job_objectives(times, on.fcfs_wait_s, on.workload, on.measured, tau_s)


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Returns the objectives of candidates, which a task runner caches."""

    search: OrderSearchProblem
    runner: TaskRunner[Store]

    def logs(self, candidates: Sequence[OrderCandidate], split: SplitName) -> FloatArray:
        """Return the logarithms of the objectives on the workloads of a split, (n_candidate, n_cell, 4)."""
        cells = self.search.splits[split]
        tasks = [replace(cell, scheduler=candidate.section) for candidate in candidates for cell in cells]
        records = self.runner.records(Evaluations(self.search.objectives.tau / SECOND), tasks)
        return np.array([JobObjectives(**each).logs() for each in records]).reshape(len(candidates), len(cells), -1)


def span_s(cell: Cell) -> float:
    """Return the seconds from the first to the last submission of the measured jobs, used to detect short traces."""
    on = _prepare(_Workload.of(cell))
    submit = on.workload.submit[on.measured]
    return float(submit[-1] - submit[0]) / SECOND


@dataclass(frozen=True)
class _Workload:
    """Cache key of a prepared workload: the key of its cell under the default scheduler; the cell itself is not compared."""

    key: str
    cell: Cell = field(compare=False)

    @classmethod
    def of(cls, cell: Cell) -> _Workload:
        default = replace(cell, scheduler=SchedulerSection())
        return cls(default.key, default)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A prepared workload, its measured rows, and their waits under FCFS without backfilling."""

    workload: Workload
    repeats: Repeats
    measured: IntArray
    fcfs_wait_s: FloatArray


@lru_cache(maxsize=MAX_PREPARED)
def _prepare(on: _Workload) -> _Prepared:
    cell = on.cell
    workload = workload_of(cell)
    model, estimate = models_of(cell.performance, cell.seed)
    estimate = model if estimate is None else estimate
    fcfs = scheduler_of(cell.baseline().scheduler, cell.warm_up)
    for part in (model, estimate):
        part.check(cell.machine, workload.table)
    repeats = Repeats(RunSpec(workload, cell.machine, fcfs, model, estimate, cell.seed))
    times = repeats.under(fcfs)
    measured = ran(times, cell.warm_up)
    if len(measured) < 2:
        raise InputError(
            f"{cell.workload.path}: fewer than two jobs remain to measure after a warm-up of {cell.warm_up} jobs",
            field="measure.warm_up",
            remedy="shorten the warm-up or take more jobs",
        )
    return _Prepared(workload, repeats, measured, (times.start[measured] - workload.submit[measured]) / SECOND)
