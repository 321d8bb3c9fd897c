"""Simulation of a cell, and the record from which a study computes all of its metrics."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from poolwise.code_fingerprint import sources
from poolwise.engines import load_kernels, simulate
from poolwise.engines.progress import ProgressListener
from poolwise.engines.simulate import Result
from poolwise.errors import InputError
from poolwise.files import costs
from poolwise.files.factory import models_of, scheduler_of
from poolwise.hashing import Json, canonical, digest, plain
from poolwise.metrics import Outcomes, Window
from poolwise.metrics.power import load_of, mean_watts, price
from poolwise.metrics.resource_use import resource_use
from poolwise.model import JobTable, Schedule, Workload
from poolwise.runner.running import listener
from poolwise.runner.task_type import Record, TaskType
from poolwise.schedulers.warm_up import warm_up_end
from poolwise.studies.cells import Cell, TraceSource, cell_sources, initial_of, workload_of


@dataclass(frozen=True)
class Cells(TaskType[Cell]):
    """Task type that simulates cells."""

    def key(self, task: Cell) -> str:
        """Return the SHA-256 of a cell's inputs and of the code that simulates it."""
        return task.key

    def label(self, task: Cell) -> str:
        """Return the varied values and the seed."""
        return task.label

    def run(self, task: Cell) -> Record:
        """Simulate a cell; see `simulate_cell`."""
        return simulate_cell(task, listener())

    def cost_kind(self, task: Cell) -> str:
        """Return all inputs that determine the engine and the cost of a pass, except the queue order."""
        chosen = task.scheduler
        policies = (chosen.backfill, chosen.placement, chosen.admission, chosen.preemption)
        return str((chosen.kind, *policies, task.performance.model, task.memory_use))

    def prepare(self, tasks: Sequence[Cell]) -> None:
        """Check the logs of the cells with their schedulers, before any cell runs, and load the kernels that the cells need."""
        check_logs(tasks)
        distinct = {(id(cell.machine), str(cell.scheduler)): cell for cell in tasks}.values()
        load_kernels((cell.machine, scheduler_of(cell.scheduler, cell.warm_up)) for cell in distinct)


@dataclass(frozen=True)
class CellMeasurement(Cells):
    """Base of task types that measure other properties of cells; results depend on a subclass's fields and module."""

    def key(self, task: Cell) -> str:
        """Return the SHA-256 of a cell and of the measurement."""
        return digest(canonical([task.key, asdict(self), sources(type(self).__module__)]))


def check_logs(cells: Iterable[Cell]) -> None:
    """Read each log for the first machine that replays it; raise InputError if its jobs do not suit a machine or scheduler."""
    tables: dict[TraceSource, JobTable] = {}
    checked: set[tuple[TraceSource, int, str]] = set()
    for cell in cells:
        if not isinstance(cell.workload, TraceSource):
            continue
        if cell.workload not in tables:
            tables[cell.workload] = workload_of(cell).table
        pair = cell.workload, id(cell.machine), cell.scheduler.model_dump_json()
        if pair not in checked:
            checked.add(pair)
            try:
                with warnings.catch_warnings(action="ignore"):  # the run of the cell warns
                    scheduler_of(cell.scheduler, cell.warm_up).check(cell.machine, tables[cell.workload])
            except InputError as error:
                file = error.file or cell.workload.path
                raise InputError(error.message, file=file, line=error.line, field=error.field, remedy=error.remedy) from error


def simulate_cell(cell: Cell, watch: ProgressListener | None = None) -> Record:
    """Simulate one cell, and return its facts and the per-job outcomes as Parquet.

    Raises InputError if the warm-up leaves no jobs to measure, or if Poolwise or an input file changed since the study began.
    """
    if cell_sources() != cell.sources:
        raise InputError("Poolwise changed during the study", remedy="run the study again")
    workload = workload_of(cell)
    check_warm_up(cell, workload)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run_cell(cell, workload, watch)
    if replace(cell).key != cell.key:
        raise InputError("a file named by the study changed during the run", remedy="run the study again")
    schedule = result.schedule
    outcomes = Outcomes.of(schedule)
    facts = {
        "inputs": cell.inputs,
        "sources": cell.sources,
        "machine": outcomes.facts,
        "resources": resources_of(schedule, Window.of(outcomes, cell.warm_up)),
        "jobs": len(workload),
        "excluded": dict(sorted(workload.excluded.items())),
        "repaired": dict(sorted(workload.repaired.items())),
        "rejected": schedule.rejections(),
        "canceled": schedule.cancellations(),
        "waiting": len(schedule.waiting),
        "refused": dict(sorted(schedule.refused.items())),
        "engine": result.engine,
        "passes": schedule.passes,
        "warm_up_end_ns": warm_up_end(cell.warm_up, schedule.job_start),
        "warnings": sorted({*workload.notes, *(str(warning.message) for warning in caught)}),
    }
    return Record(plain(facts), {"parquet": parquet(outcomes)})


def check_warm_up(cell: Cell, workload: Workload) -> None:
    """Raise InputError if the warm-up leaves no jobs to measure."""
    if cell.warm_up >= len(workload):
        raise InputError(
            f"a warm-up of {cell.warm_up} jobs leaves no job of {len(workload)} to measure",
            field="measure.warm_up",
            remedy="shorten the warm-up or use more jobs",
        )


_latest: dict[str, Schedule] = {}
"""Key of the cell that was last simulated again, and its schedule."""


def simulate_again(cell: Cell, outcomes: Outcomes | None = None) -> Schedule:
    """Simulate a cell again to obtain its schedule, which is not stored; the latest schedule is kept for the next call.

    Raises InputError if the start and end times differ from the stored `outcomes`.
    """
    schedule = _latest.get(cell.key)
    if schedule is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the cell's facts already contain the warnings
            schedule = run_cell(cell, workload_of(cell)).schedule
        _latest.clear()
        _latest[cell.key] = schedule
    again = Outcomes.of(schedule)
    if outcomes is not None and not (np.array_equal(again.start, outcomes.start) and np.array_equal(again.end, outcomes.end)):
        raise InputError(
            "a metric needs the schedule of a run, but a new simulation of the run gave a different schedule",
            field="metrics",
            remedy="run it again with this version of Poolwise",
        )
    return schedule


def run_cell(cell: Cell, workload: Workload, watch: ProgressListener | None = None) -> Result:
    """Simulate a cell with its workload."""
    model, estimate = models_of(cell.performance, cell.seed)
    return simulate(
        workload,
        cell.machine,
        scheduler_of(cell.scheduler, cell.warm_up),
        model=model,
        estimate=estimate,
        seed=cell.seed,
        pass_per_event=cell.scheduler.pass_per_event,
        watch=watch,
        initial=initial_of(cell),
    )


def parquet(outcomes: Outcomes) -> bytes:
    """Return outcomes as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    outcomes.to_frame().write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def resources_of(schedule: Schedule, window: Window) -> Json:
    """Return the resource use, power, price and load of a schedule as plain data; separate metrics cover whole nodes."""
    machine = schedule.machine
    used = () if "nodes" in machine.resources else resource_use(schedule, window)
    rows = [[use.resource, use.installed, use.used, use.stranded] for use in used]
    load = load_of(schedule, window)
    things = {name: [_known(value) for value in values] for name, values in costs.loads_by_type(machine, load).items()}
    return {"use": rows, "watts": _known(mean_watts(machine, load)), "dollars": _known(price(machine)), "things": things}


def _known(value: float) -> float | None:
    """Return a finite number, or None (JSON has no NaN)."""
    return value if math.isfinite(value) else None
