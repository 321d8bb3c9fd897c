"""Expansion of the variants of a study into cells: validated sections, machines and workloads."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from poolwise import registry
from poolwise.errors import InputError, Problems, errors_below
from poolwise.files.component import Component
from poolwise.files.costs import Costs
from poolwise.files.document import Document
from poolwise.files.factory import check_placement_suits, models_of
from poolwise.files.machine import MachineDescription, read_machine
from poolwise.files.scheduler import check_composition
from poolwise.files.study import StudyFile, WorkloadSection, inline, tables_with_name
from poolwise.files.validation import validate
from poolwise.hashing import canonical, digest
from poolwise.model import Kind, Machine
from poolwise.studies.cells import Cell, GeneratorSource, TraceSource, WorkloadSource, cell_sources
from poolwise.studies.initial_state import StateSource
from poolwise.studies.variants import ResolvedStudy, StudyVariant
from poolwise.traces.generators import configure

MOST_PROBLEMS = 1000
"""Number of problems after which no further variants are checked."""


class ValidStudy(NamedTuple):
    """A valid study, its machine, and its workload for the first seed."""

    file: StudyFile
    workload: WorkloadSource
    machine: MachineDescription


class Expansion:
    """Cells of a study; machines and hashes of traces are cached.

    Attributes
    ----------
    file : the valid study
    cells : the cells, in order
    today : key of a cell -> the run of today's configuration with which it is compared
    """

    file: StudyFile

    def __init__(self, study: ResolvedStudy, problems: Problems) -> None:
        self.cells: list[Cell] = []
        self._today: list[Cell] = []
        self._seen: dict[tuple[str, str], Cell] = {}
        self._machines: dict[str, MachineDescription] = {}
        self._digests: dict[str, str] = {}
        with problems.attempt():  # report wrong names even if varied values replace them
            self.file = self._read(study.base).file
        for variant in study.variants(problems):
            with problems.attempt():
                self._add(variant, study.document)
            if variant.today is not None:
                with problems.attempt():
                    self._today += self._expand(variant.today)
            if len(problems.errors) > MOST_PROBLEMS:
                break
        problems.finish()
        self.today = {cell.key: today for cell, today in zip(self.cells, self._today, strict=False)}

    def memory_machine(self, document: Document) -> MachineDescription | None:
        """Return the machine of `measure.memory_baseline`; its nodes must have as many cores as those of the other machines."""
        file = self.file.measure.memory_baseline
        if file is None:
            return None
        part = Document.read(Path(file))
        machine = read_machine(part.with_tables(**tables_with_name(part)))
        if {_cores(cell.machine) for cell in self.cells} != {_cores(machine.machine)}:  # one trace would give different jobs
            path = ("measure", "memory_baseline")
            raise document.error(path, "its nodes have different core counts", "use a machine that differs only in memory")
        return machine

    def _add(self, variant: StudyVariant, written: Document) -> None:
        """Add the cells of a variant; raises InputError for cells that exist already."""
        cells = self._expand(variant)
        costs = canonical(cells[0].costs.content())
        for cell in cells:
            same = self._seen.setdefault((cell.key, costs), cell)
            if same is not cell:
                message = f"duplicate cells: {same.label} and {cell.label}"
                raise written.error(("vary",), message, "list each value once")
        self.cells += cells

    def _expand(self, variant: StudyVariant) -> list[Cell]:
        """Return a cell for each seed; the cells share all objects that do not depend on the seed."""
        file, workload, machine = self._read(variant.document)
        with variant.document.errors_at("scheduler"):
            check_placement_suits(file.scheduler, machine.machine)
        costs, memory_use = Costs(file.power, file.prices), file.workload.memory_use
        seeds, seeded = file.seeds.chosen(), memory_use is not None and _takes_seed("memory_uses", memory_use)
        cells = []
        for seed in seeds:
            other = workload if seed == seeds[0] else self._workload(file.workload, seed)
            workload = workload if workload == other else other
            if memory_use is not None and seeded:
                memory_use = Component(name=memory_use.name, **{**memory_use.settings, "seed": seed})
            cells.append(
                Cell(
                    variant.parameters,
                    seed,
                    workload,
                    *machine,
                    file.scheduler,
                    file.performance,
                    file.measure.warm_up,
                    cell_sources(),
                    costs,
                    memory_use,
                )
            )
        return cells

    def _read(self, document: Document) -> ValidStudy:
        """Validate a study with its machine and first workload; raises InputError with every problem."""
        problems, machine = Problems(), None
        if isinstance(document.tables.get("machine"), str | dict):
            with problems.attempt():
                machine = self._machine(inline(document, "machine"))
        with problems.attempt():
            file = validate(StudyFile, document)
            with problems.attempt("scheduler"):
                check_composition(file.scheduler)
            with problems.attempt("performance"):
                models_of(file.performance, 0)
            if file.workload.state is not None and file.measure.warm_up:
                problem = InputError("a run from a state cannot have a warm-up", remedy="write warm_up = 0")
                problems.errors.append(problem.at("measure", "warm_up"))
            if machine is not None:
                with problems.attempt():
                    Costs(file.power, file.prices).check(machine.machine)
            with problems.attempt("workload"):
                workload = self._workload(file.workload, file.seeds.chosen()[0])
        problems.finish(document.located)
        assert machine is not None  # validation requires a machine
        return ValidStudy(file, workload, machine)

    def _machine(self, document: Document) -> MachineDescription:
        text = canonical([document.tables["machine"], str(document.location(("machine", "version")).file.parent)])
        if text not in self._machines:
            self._machines[text] = read_machine(document, ("machine",))
        return self._machines[text]

    def _workload(self, section: WorkloadSection, seed: int) -> WorkloadSource:
        """Return the workload; the seed of a generator or format defaults to the cell's."""
        with errors_below("state"):
            if section.state is not None:
                return StateSource.of(Path(section.state).resolve(), section.default_runtime)
        with errors_below("settings"):
            if section.generator is not None:
                settings = {"seed": seed, **section.settings}
                configure(section.generator, **settings)
                return GeneratorSource(section.generator, canonical(settings), section.first, section.jobs)
        assert section.trace is not None  # validation requires a trace, a generator or a state
        path, options = str(Path(section.trace).resolve()), dict(section.options)
        if path not in self._digests:
            self._digests[path] = digest(Path(path).read_bytes())
        if section.format != "auto":
            component = Component.of(section.format, options)
            options = {"seed": seed, **options} if _takes_seed("formats", component) else options
            with errors_below("options"):
                component.make("formats")
        source = path, self._digests[path], section.format, canonical(options)
        return TraceSource(*source, section.first, section.jobs, section.clock, only=canonical(section.only))


def _takes_seed(group: str, component: Component) -> bool:
    """Return whether a component takes a seed that its settings do not give."""
    fields = getattr(registry.find(group, component.name), "__dataclass_fields__", {})
    return "seed" in fields and "seed" not in component.settings


def _cores(machine: Machine) -> tuple[int, ...]:
    """Return the distinct core counts of whole nodes, ascending."""
    cores = machine.per_node.get("cores")
    return () if cores is None else tuple(sorted(set(cores[machine.of_kind(Kind.NODE)].tolist())))
