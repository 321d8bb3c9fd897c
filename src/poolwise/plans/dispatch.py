"""Plans of kind "dispatch": the queue order and placement to run for a workload on given processing units.

Source: VineSim, section 4.6 (deployment and workload fixed, policies searched), section 9 (batch jobs with deadlines alongside
latency-critical jobs).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from poolwise import registry
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.fields import Section
from poolwise.files.validation import validate
from poolwise.hashing import Json
from poolwise.optimize.monotone import Element
from poolwise.plans.dispatch_answer import dispatch_answer
from poolwise.plans.dispatch_file import DispatchSection
from poolwise.plans.plan import PlanFile, ReportProgress
from poolwise.plans.units import (
    UnitMeasurement,
    UnitStudy,
    check_gaps,
    check_placements,
    check_types,
    component_tables,
)
from poolwise.presentation.answer import Answer
from poolwise.quantities import format_count
from poolwise.runner import TaskRunner
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell
from poolwise.traces.vinesim import Types


class DispatchFile(PlanFile):
    """A plan of the queue order and placement to run on given units."""

    plan: DispatchSection


@registry.register("plans", "dispatch")
@dataclass(frozen=True, eq=False)
class DispatchPlan:
    """The queue order and placement with the lowest latency among those that meet the deadline target.

    Attributes
    ----------
    section : [plan]
    study : the plan as a study
    cells : every order with every placement, one cell for each seed
    """

    file: ClassVar[type[Section]] = DispatchFile

    section: DispatchSection
    study: UnitStudy
    cells: tuple[Cell, ...]

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read a plan file; raise InputError with file, line, field and remedy."""
        section = validate(DispatchFile, document).plan
        with document.errors_at("plan", "options"):
            Component.of(section.format, section.options).make("formats")
        _check_names(section, document)
        machine: Json = {} if section.units is None else {"units": section.units}
        study = UnitStudy.of(document, section, section.workload(), machine, "fcfs")
        orders, placements = component_tables(section.order), component_tables(section.placement)
        return cls(section, study, study.cells({"scheduler.order": orders, "scheduler.placement": placements}))

    def count_jobs(self) -> int:
        """Count the jobs of the trace or the streams."""
        return self.study.count_jobs()

    def sample_runs(self) -> Sequence[Cell]:
        """Return all runs."""
        return self.cells

    @property
    def measurement(self) -> UnitMeasurement:
        """Measurement of each cell."""
        streams, names = self.section.stream, [stream.name for stream in self.section.stream]
        of = None if self.section.of is None else names.index(self.section.of)
        counted = tuple(k for k, stream in enumerate(streams) if self.section.counts(stream))
        return UnitMeasurement(self.section.latency, of, counted, tuple((s.name, s.slack is not None) for s in streams))

    def answer(self, runner: TaskRunner[CellStore], tell: ReportProgress) -> Answer:
        """Simulate every order with every placement, and choose the best pair."""
        section = self.section
        pairs: list[Element] = list(itertools.product(range(len(section.order)), range(len(section.placement))))
        tell(f"{format_count(len(pairs), 'candidate')}, {format_count(len(self.cells), 'run')}")
        records = runner.records(self.measurement, self.cells)
        runs = {pair: records[k * section.seeds : (k + 1) * section.seeds] for k, pair in enumerate(pairs)}
        return dispatch_answer(section, self.study, runs)


def _check_names(section: DispatchSection, document: Document) -> None:
    types = Types.of(section.types)
    check_types(document, "unit type", types.units, ((("units",), name) for name in section.units or {}))
    task_types = ((("stream", k, "type"), stream.type) for k, stream in enumerate(section.stream))
    check_types(document, "task type", types.tasks, task_types)
    for k, stream in enumerate(section.stream):
        check_gaps(stream.inter_arrival, document, "stream", k, "inter_arrival")
    check_placements(section, document)
    for choice in section.order:
        with document.errors_at("plan", "order"):
            if choice.make("orders").kind != "static":
                raise InputError(
                    f"'{choice.name}' changes with time", field="order", remedy="choose a static order, such as edf"
                )
