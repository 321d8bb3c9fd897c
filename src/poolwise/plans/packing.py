"""Plans of kind "packing": the number of jobs that fit at once, and the stranded share of the devices, by placement.

Source: Weng et al. 2023, "Beware of Fragmentation", section 6: jobs are drawn from a trace until their requests exceed the
capacity, no job ends, and the placed jobs are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field

from poolwise import registry
from poolwise.code_fingerprint import sources
from poolwise.files.document import Document
from poolwise.files.fields import Name, Section, validate
from poolwise.files.study import StudyFile
from poolwise.hashing import canonical, digest
from poolwise.model import Kind
from poolwise.plans.packing_answer import packing_answer
from poolwise.plans.packing_task import pack
from poolwise.plans.plan import Answer, ReportProgress
from poolwise.runner import Executor, Record, Store, TaskType, records
from poolwise.runner.progress import LineProgress
from poolwise.studies.cells import Cell, workload_of
from poolwise.studies.study import resolve


class PackingSection(Section):
    """Jobs that fit at once, for each combination of [vary]."""

    kind: Literal["packing"]
    resource: Name = Field(default="gpu_milli", description="resource of devices that jobs request in parts")
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
        section = validate(PackingSection, document, ("plan",))
        study = document.copy()
        del study.tables["plan"]
        study.tables.setdefault("measure", {}).setdefault("warm_up", 0)
        cells = resolve(study).cells
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

    def answer(self, out: Path, executor: Executor, tell: ReportProgress) -> Answer:
        """Pack each combination with each seed."""
        store = Store(out)
        with store.writing():
            tell(f"{len(self.cells)} packings")
            found = records(
                _TaskType(self.section.resource, self.section.load),
                self.cells,
                store,
                executor,
                LineProgress(tell),
                min_tasks_per_process=2,
            )
            return packing_answer(self.cells, found, self.section.device)


@dataclass(frozen=True)
class _TaskType(TaskType[Cell]):
    """Task type that packs cells."""

    resource: str
    load: float

    def key(self, task: Cell) -> str:
        """Return the SHA-256 of all inputs of a packing."""
        return digest(
            canonical(
                {
                    "cell": task.key,
                    "resource": self.resource,
                    "load": self.load,
                    "sources": sources("poolwise.plans.packing_task"),
                }
            )
        )

    def label(self, task: Cell) -> str:
        """Return the varied parameters and the seed as text."""
        return task.label

    def run(self, task: Cell) -> Record:
        """Pack one cell."""
        return Record(pack(task, self.resource, self.load))
