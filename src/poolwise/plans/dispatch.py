"""Plans of kind "dispatch": the queue order and placement to run for a workload on given processing units.

Source: VineSim, section 4.6 (deployment and workload fixed, policies searched), section 9 (batch jobs with deadlines alongside
latency-critical jobs).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Self

from poolwise import registry
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.fields import Section
from poolwise.files.validation import validate
from poolwise.metrics.latency import parents
from poolwise.model import Machine
from poolwise.plans.dispatch_answer import dispatch_answer
from poolwise.plans.dispatch_file import DispatchSection
from poolwise.plans.dispatch_tasks import DispatchTaskType
from poolwise.plans.plan import PlanFile, ReportProgress
from poolwise.plans.unit_cells import PlanTables, check_gaps, check_placements, check_tables
from poolwise.presentation.answer import Answer
from poolwise.runner import TaskRunner
from poolwise.studies.cell_store import CellStore
from poolwise.traces import vinesim


class DispatchFile(PlanFile):
    """A plan of the queue order and placement to run on given units."""

    plan: DispatchSection


@registry.register("plans", "dispatch")
@dataclass(frozen=True, eq=False)
class DispatchPlan:
    """The queue order and placement with the lowest latency of those that meet the deadline target."""

    file: ClassVar[type[Section]] = DispatchFile

    task_type: DispatchTaskType

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read a plan file; raise InputError with file, line, field and remedy."""
        check_tables(document, "dispatch")
        section = validate(DispatchSection, document, ("plan",))
        with document.errors_at("plan", "options"):
            Component.of(section.format, section.options).make("formats")
        tables = PlanTables.read(section)
        _check_names(section, tables.types, document)
        return cls(DispatchTaskType(section, tables, _machine(section, tables)))

    def count_jobs(self) -> int:
        """Count the jobs of the trace or the streams."""
        return parents(self.task_type.jobs(0).read(self.task_type.machine))[1]

    def answer(self, runner: TaskRunner[CellStore], tell: ReportProgress) -> Answer:
        """Simulate every order with every placement, and choose the best pair."""
        section = self.task_type.section
        jobs = [self.task_type.jobs(seed) for seed in range(section.seeds)]
        cells = {
            (order, placement): self.task_type.cells(order, placement, jobs)
            for order in range(len(section.order))
            for placement in range(len(section.placement))
        }
        tell(f"{len(cells):,} candidates, {len(cells) * section.seeds:,} runs")
        found = iter(runner.records(self.task_type, [cell for each in cells.values() for cell in each]))
        return dispatch_answer(self.task_type, {pair: list(islice(found, section.seeds)) for pair in cells})


def _machine(section: DispatchSection, tables: PlanTables) -> Machine:
    if (file := tables.files.get("deployment")) is not None:
        return tables.machine(vinesim.read_deployment(file, tables.types), file.stem)
    kinds = [tables.types.units.index(name) for name, count in (section.units or {}).items() for _ in range(count)]
    return tables.machine(vinesim.UnitList.of([(kind, 0, shelf) for shelf, kind in enumerate(kinds)]), "units")


def _check_names(section: DispatchSection, types: vinesim.Types, document: Document) -> None:
    for name in section.units or {}:
        if name not in types.units:
            raise document.unknown(("plan", "units"), "unit type", name, list(types.units))
    for k, stream in enumerate(section.stream):
        if stream.type not in types.tasks:
            raise document.unknown(("plan", "stream", k, "type"), "task type", stream.type, list(types.tasks))
        check_gaps(stream.inter_arrival, document, "plan", "stream", k, "inter_arrival")
    check_placements(section, document)
    for choice in section.order:
        with document.errors_at("plan", "order"):
            if choice.make("orders").kind != "static":
                raise InputError(
                    f"'{choice.name}' changes with time", field="order", remedy="choose a static order, such as edf"
                )
