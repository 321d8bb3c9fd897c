"""Cases of reproductions: simulated cells and other measurements, whose records the task runner caches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from poolwise.code_fingerprint import sources
from poolwise.engines import load_kernels
from poolwise.errors import InputError
from poolwise.files.factory import scheduler_of
from poolwise.hashing import Json, canonical, digest, plain
from poolwise.model import Schedule
from poolwise.runner import Executor, Progress, Record, TaskRunner, TaskType
from poolwise.studies.cell_simulation import run_cell
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell, workload_of


class MeasuredCase(ABC):
    """One measurement. A subclass is a frozen dataclass; equal fields give equal measurements."""

    @abstractmethod
    def inputs(self) -> Json:
        """Return everything other than the fields and the code on which the measurement depends, such as files."""

    @abstractmethod
    def measure(self) -> Json:
        """Return the measured values as plain data."""

    def group(self) -> str | None:
        """Return a name shared by cases that cost less when they run in one process; see `TaskType.group`."""
        return None

    @staticmethod
    def prepare(cases: Sequence[Any]) -> None:
        """Load the kernels that cases of this class need."""
        return


class CellCase(MeasuredCase):
    """Measurement of a simulated cell, like those of a study or a plan."""

    @abstractmethod
    def cell(self) -> Cell:
        """Return the machine, workload, scheduler, performance model and seed of the run."""

    @abstractmethod
    def measured(self, schedule: Schedule) -> Json:
        """Return the values measured on the schedule of the cell."""

    def inputs(self) -> Json:
        """Return the inputs of the cell."""
        return self.cell().inputs

    def measure(self) -> Json:
        """Simulate the cell and measure its schedule."""
        return self.measured(self.simulate())

    def simulate(self) -> Schedule:
        """Return the schedule of the cell."""
        cell = self.cell()
        return run_cell(cell, workload_of(cell)).schedule

    @staticmethod
    def prepare(cases: Sequence[Any]) -> None:
        """Load the kernels that simulate the cells."""
        cells = (case.cell() for case in cases)
        load_kernels((cell.machine, scheduler_of(cell.scheduler, cell.warm_up)) for cell in cells)


AnyCase = TypeVar("AnyCase", bound=MeasuredCase)


@dataclass(frozen=True)
class Measurer:
    """Measures cases on an executor and stores the records in a folder, so that an interrupted reproduction can resume."""

    folder: Path
    executor: Executor
    progress: Progress | None = None

    def __call__(self, cases: Iterable[AnyCase]) -> dict[AnyCase, Json]:
        """Return case -> measurement of cases of one class; raise InputError if the code changes while they run."""
        wanted = list(dict.fromkeys(cases))
        if not wanted:
            return {}
        store = CellStore(self.folder)
        with store.writing():
            runner = TaskRunner(store, self.executor, self.progress)
            return dict(zip(wanted, runner.records(CaseMeasurement(type(wanted[0])), wanted), strict=True))


class CaseMeasurement(TaskType[MeasuredCase]):
    """Task type of the cases of a class."""

    def __init__(self, kind: type[MeasuredCase]) -> None:
        self.kind = kind
        self.code = sources(kind.__module__)

    def key(self, task: MeasuredCase) -> str:
        """Return the SHA-256 of a case, its inputs and the code."""
        return digest(canonical({"case": asdict(task), "inputs": task.inputs(), "sources": self.code}))  # type: ignore[call-overload]  # every case is a dataclass

    def label(self, task: MeasuredCase) -> str:
        """Return the fields of the case."""
        return str(task)

    def group(self, task: MeasuredCase) -> str | None:
        """Return the group of the case."""
        return task.group()

    def run(self, task: MeasuredCase) -> Record:
        """Measure a case; raise InputError if the code has changed since the reproduction started."""
        if sources(self.kind.__module__) != self.code:  # in a worker that started later
            raise InputError("the Poolwise source code changed while the reproduction ran", remedy="run it again")
        return Record(plain(task.measure()))

    def prepare(self, tasks: Sequence[MeasuredCase]) -> None:
        """Load the kernels of the cases."""
        self.kind.prepare(tasks)
