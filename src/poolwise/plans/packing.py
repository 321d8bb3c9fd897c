"""Plans of kind "packing": the number of jobs that fit at once, and the stranded share of the devices, by placement.

Source: Weng et al. 2023, "Beware of Fragmentation", section 6: jobs are drawn from a trace until their requests exceed the
capacity, no job ends, and the placed jobs are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from pydantic import Field

from poolwise import registry
from poolwise.errors import Problems
from poolwise.files.document import Document
from poolwise.files.fields import Name, Section
from poolwise.files.study import StudyFile
from poolwise.files.validation import validate
from poolwise.model import Kind
from poolwise.plans.packing_answer import packing_answer
from poolwise.plans.packing_task import Packings
from poolwise.plans.plan import ReportProgress
from poolwise.presentation.answer import Answer
from poolwise.runner import TaskRunner
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell, workload_of
from poolwise.studies.study import resolve


class PackingSection(Section):
    """Jobs that fit at once, for each combination of [vary]."""

    kind: Literal["packing"]
    resource: Name = Field(default="gpu_milli", description="device resource that jobs request in fractions")
    device: Name = Field(default="GPU", description="word for a device in the answer")
    load: float = Field(
        default=1.3, gt=0, le=10, description="jobs are drawn until they request this multiple of the devices' capacity"
    )


class PackingFile(StudyFile):
    """A study whose jobs never end."""

    plan: PackingSection


@registry.register("plans", "packing")
@dataclass(frozen=True, eq=False)
class Packing:
    """The number of jobs that fit at once and the stranded share of the devices, for each combination of [vary].

    Attributes
    ----------
    section : [plan]
    cells : machine, workload and scheduler of each combination and seed
    """

    file: ClassVar[type[Section]] = PackingFile

    section: PackingSection
    cells: tuple[Cell, ...]

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read a plan file; raise InputError with file, line, field and remedy."""
        problems = Problems()
        with problems.attempt():
            section = validate(PackingSection, document, ("plan",))
        measure = {"warm_up": 0, **document.tables.get("measure", {})}
        with problems.attempt():
            cells = resolve(document.without("plan").with_tables(measure=measure)).cells
        problems.finish()
        for cell in cells:
            machine = cell.machine
            devices = machine.of_kind(Kind.DEVICE)
            shared = [n for k, n in enumerate(machine.resources) if machine.capacity[devices, k].any()]
            if section.resource not in shared:
                raise document.unknown(("plan", "resource"), "resource of devices", section.resource, shared)
        return cls(section, cells)

    def count_jobs(self) -> int:
        """Count the jobs of the trace from which packings are drawn."""
        return len(workload_of(self.cells[0]))

    def sample_runs(self) -> Sequence[Cell]:
        """Return no runs, because a packing fills an empty machine only once."""
        return ()

    def answer(self, runner: TaskRunner[CellStore], tell: ReportProgress) -> Answer:
        """Pack each combination with each seed."""
        tell(f"{len(self.cells)} packings")
        records = runner.records(Packings(self.section.resource, self.section.load), self.cells)
        return packing_answer(self.cells, records, self.section.device)
