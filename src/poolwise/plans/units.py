"""Plans of processing units, as studies: counts of unit types and policies vary, and every seed has its own jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from poolwise.arrays import BoolArray, FloatArray
from poolwise.engines.dispatch import replay as compiled
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.fields import FileName, Positive, Registered, Section
from poolwise.hashing import Json, digest
from poolwise.metrics.deadlines import missed_pct
from poolwise.metrics.latency import LatencySummary, job_latency_us, parents
from poolwise.metrics.unit_use import dispatch_window, energy_j, purchase, unit_use
from poolwise.model import Schedule
from poolwise.optimize.monotone import Element
from poolwise.policies.placement.units.policy import UnitPolicy
from poolwise.presentation.format import humanize_name
from poolwise.quantities import US, format_time
from poolwise.runner.task_type import Record
from poolwise.studies.cell_simulation import CellMeasurement, run_cell
from poolwise.studies.cells import Cell, workload_of
from poolwise.studies.study import resolve
from poolwise.traces.vinesim import InterArrival


def _file(folder: str) -> FileName:
    return FileName("give a path relative to the plan", folder)


TableFile = Annotated[str, _file("affinities")]
TraceFile = Annotated[str | None, _file("traces")]
DeploymentName = Annotated[str | None, _file("deployments")]


class UnitPlanSection(Section):
    """Base of plans of processing units."""

    affinity: TableFile = Field(
        description='affinity table; like all files here, a path relative to the plan or "catalog:NAME"'
    )
    affinity_kind: Literal["absolute", "relative"] = "absolute"
    power: Annotated[str | None, _file("affinities")] = Field(default=None, description="power table, for energy")
    types: Annotated[str | None, _file("affinities")] = Field(default=None, description="table of additional type names")
    trace: TraceFile = Field(default=None, description="trace of jobs")
    placement: Annotated[list[Component], Registered("placements")] = Field(
        default=[Component(name="high")], min_length=1, description="placements to choose from"
    )
    latency: Literal["mean", "p50", "p99", "p99_9"] = Field(default="p99", description="statistic of the job latency")
    seeds: Positive = Field(default=3, description="number of runs per candidate; all candidates use the same seeds")

    def files(self, *keys: str) -> dict[str, str]:
        """Return key -> absolute path, for the files that the plan names."""
        return {key: str(Path(name).resolve()) for key in keys if (name := getattr(self, key, None)) is not None}


_TABLES = ("deployment", "affinity", "power", "prices", "types")


@dataclass(frozen=True, eq=False)
class UnitStudy:
    """The study of a plan, whose cells vary the numbers of units and the policies."""

    document: Document
    section: UnitPlanSection

    @classmethod
    def of(cls, document: Document, section: UnitPlanSection, workload: Json, machine: Json, order: str | None) -> UnitStudy:
        """Build the study of a plan, given its workload and the machine settings that complement the unit tables."""
        files = section.files(*_TABLES)
        tables: Json = {
            "version": 1,
            "machine": {"version": 1, "format": "vinesim", "affinity_kind": section.affinity_kind, **files, **machine},
            "workload": workload,
            "scheduler": {"kind": "dispatch", "placement": "high", **({} if order is None else {"order": order})},
            "performance": {"model": {"name": "combined", "models": ["affinity", "transfer"]}},
            "measure": {"warm_up": 0, "baseline": False},
            "seeds": {"count": section.seeds},
        }
        return cls(document.without("plan").with_tables(**tables), section)

    def cells(self, vary: Mapping[str, Sequence[Any]], settings: Mapping[str, Any] | None = None) -> tuple[Cell, ...]:
        """Return the cells of every combination of values, one for each seed."""
        return resolve(self.document, {"vary": dict(vary), **(settings or {})}).cells

    @cached_property
    def first(self) -> tuple[Cell, ...]:
        """The cells of the study as written, one for each seed."""
        return self.cells({})

    def count_jobs(self) -> int:
        """Count the jobs of the first seed."""
        return parents(workload_of(self.first[0]))[1]

    def inputs(self, keys: bool) -> dict[str, str]:
        """Return the hash of each file of the plan by its name or, with `keys`, by its key in the plan and its name."""
        files = {key: Path(name) for key, name in self.section.files(*_TABLES, "trace").items()}
        return {f"{key} {file.name}" if keys else file.name: digest(file.read_bytes()) for key, file in files.items()}


@dataclass(frozen=True)
class UnitMeasurement(CellMeasurement):
    """Task type that measures latency, missed deadlines, energy and the use of units.

    Parameters
    ----------
    latency : statistic of the job latency
    of : number of the stream whose latency counts; None for all jobs
    deadlines : numbers of the streams whose deadlines count
    streams : name of each stream, and whether its jobs have deadlines
    """

    latency: str
    of: int | None = None
    deadlines: tuple[int, ...] = ()
    streams: tuple[tuple[str, bool], ...] = ()

    min_tasks_per_process = 8  # the runs are short

    def prepare(self, tasks: Sequence[Cell]) -> None:
        """Compile the kernels of task dispatch."""
        compiled.load()

    def run(self, task: Cell) -> Record:
        """Simulate and measure a cell; raise InputError if the order needs a column that the workload lacks."""
        workload = workload_of(task)
        result = run_cell(task, workload)
        counts = {"excluded": dict(workload.excluded), "repaired": dict(workload.repaired)}
        return Record({**self._measured(result.schedule), "engine": result.engine, "read": counts})

    def _measured(self, schedule: Schedule) -> Json:
        """Return the measurements of a schedule; None if undefined."""
        latency, window = job_latency_us(schedule), dispatch_window(schedule)
        use, finished = unit_use(schedule, window), ~np.isnan(latency)
        stream = schedule.workload.attributes.get("stream", np.zeros(len(schedule.workload), dtype=np.int64))
        counted = finished if self.of is None else finished & (stream == self.of)
        missed = none_if_nan(missed_pct(schedule, np.isin(stream, self.deadlines))) if self.deadlines else None
        return {
            "latency_us": float(getattr(LatencySummary.of(latency[counted]), self.latency)),
            "purchase_cost": none_if_nan(purchase(schedule.machine)),
            "energy_j": none_if_nan(energy_j(schedule, window)),
            "utilization": float(use.overall),
            "by_type": use.by_type(),
            "makespan_us": (window.end - window.begin) / US,
            "jobs": int(finished.sum()),
            "missed_pct": missed,
            "streams": {name: _stream(schedule, latency, stream == k, slack) for k, (name, slack) in enumerate(self.streams)},
        }


def _stream(schedule: Schedule, latency: FloatArray, rows: BoolArray, deadlines: bool) -> Json:
    spread = LatencySummary.of(latency[rows & ~np.isnan(latency)])
    return {"p50_us": spread.p50, "p99_us": spread.p99, "missed_pct": missed_pct(schedule, rows) if deadlines else None}


def none_if_nan(value: float) -> float | None:
    """Return a number, or None for NaN."""
    return None if np.isnan(value) else float(value)


def check_types(
    document: Document, what: str, names: Sequence[str], names_at: Iterable[tuple[tuple[str | int, ...], str]]
) -> None:
    """Raise InputError for the first of the pairs (path, name) whose name is not a type."""
    for path, name in names_at:
        if name not in names:
            raise document.unknown(("plan", *path), what, name, list(names))


def check_gaps(text: str, document: Document, *path: str | int) -> None:
    """Raise InputError for invalid inter-arrival times."""
    try:
        InterArrival.parse(text)
    except InputError as error:
        raise document.error(("plan", *path), error.message, error.remedy) from error


def check_placements(section: UnitPlanSection, document: Document) -> None:
    """Raise InputError for a placement that does not place single tasks."""
    for choice in section.placement:
        with document.errors_at("plan", "placement"):
            policy = choice.make("placements")
            if not isinstance(policy, UnitPolicy):
                remedy = "choose flat, high, pref, closer_to_data, earliest_finish or delay"
                raise InputError(f"'{choice.name}' does not place single tasks", field="placement", remedy=remedy)
            policy.check_settings()


def component_tables(components: Iterable[Component]) -> list[Json]:
    """Return components as values of a varied path."""
    return [component.model_dump() for component in components]


# Answers


@dataclass(frozen=True, eq=False)
class MeasuredUnits:
    """Measured candidates, in the order of a plan's answer.

    Attributes
    ----------
    elements : n candidates; their last position selects the placement
    values : (n, n_seed, k) measured values; NaN if undefined
    """

    elements: tuple[Element, ...]
    values: FloatArray

    @cached_property
    def means(self) -> FloatArray:
        """(n, k) means over the seeds."""
        means: FloatArray = self.values.mean(axis=1)
        return means


def seeds_note(seeds: int) -> str:
    """State the number of seeds over which the values of candidates are averaged."""
    return f"Means over {seeds} seeds, the same for all candidates." if seeds > 1 else "One seed."


def microseconds(us: float) -> str:
    """Format a time given in microseconds."""
    return format_time(us / 1e6)


def placement_name(section: UnitPlanSection, element: Element) -> str:
    """Return the name of a candidate's placement for readers."""
    return humanize_name(str(section.placement[element[-1]]))
