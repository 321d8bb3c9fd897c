"""Cells of a study: machine, workload, scheduler, parameters and seed, which together determine one simulation."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from poolwise.code_fingerprint import sources
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.costs import Costs
from poolwise.files.factory import scheduler_content
from poolwise.files.machine import MachineDescription
from poolwise.files.study import PerformanceSection, SchedulerSection
from poolwise.hashing import Json, canonical, digest
from poolwise.model import Initial, Machine, Workload
from poolwise.model.eligibility import eligible_sets
from poolwise.model.licenses import license_requests
from poolwise.studies.initial_state import StateSource
from poolwise.traces import excerpt, read, without
from poolwise.traces.generators import configure
from poolwise.traces.memory_use.source import MemoryUseSource

Parameter = str | int | float | bool


def cell_sources() -> str:
    """Return the SHA-256 over the files of Poolwise that simulating a cell can execute."""
    return sources("poolwise.studies.cell_simulation")


@dataclass(frozen=True)
class TraceSource:
    """An excerpt of a trace file, and the expected hash of the file."""

    path: str
    sha256: str
    format: str
    options: str  # canonical JSON, so that a trace is hashable
    first: int
    jobs: int | None
    clock: str = "first job"  # or "trace", see the study file
    without: tuple[int, ...] = ()  # ids of jobs to leave out, to measure their effect
    only: str = "{}"  # canonical JSON: attribute -> values of the jobs to keep

    def content(self) -> Json:
        """Return everything that a result depends on."""
        options, form = json.loads(self.options), {}
        if self.format != "auto":
            form = Component(name=self.format, **options).identity("formats")
        return {
            "sha256": self.sha256,
            "format": {**form, "settings": {}} if form else "auto",
            "options": form.get("settings", options),
            "first": self.first,
            "jobs": self.jobs,
            "clock": self.clock,
            **({} if self.only == "{}" else {"only": json.loads(self.only)}),
            **_left_out(self.without),
        }

    def read(self, machine: Machine) -> Workload:
        """Read the jobs for a machine.

        Raises InputError for an invalid file, for one that has changed since the study was loaded, and for jobs that name
        partitions or licenses that the machine lacks.
        """
        workload = without(self._read(machine), self.without)
        try:
            license_requests(machine, workload.table)
            if machine.node_sets:
                eligible_sets(machine, workload.table)
        except InputError as error:
            raise error.in_file(self.path) from None
        return workload

    def _read(self, machine: Machine) -> Workload:
        path = Path(self.path)
        if digest(path.read_bytes()) != self.sha256:
            raise InputError("the trace changed during the study", file=path, remedy="run the study again")
        whole = read(path, machine, format=self.format, only=json.loads(self.only), **json.loads(self.options))
        left = len(whole) - self.first
        if left < (self.jobs or 1):
            raise InputError(
                f"the trace has {len(whole)} jobs, fewer than needed for {self.jobs or 1} starting at {self.first}",
                file=path,
                field="workload.jobs" if self.jobs else "workload.first",
                remedy="use fewer jobs, or start earlier",
            )
        if self.clock == "trace" and not self.first and self.jobs is None:
            return whole
        taken = excerpt(whole, self.first, self.jobs or left)
        if self.clock == "trace":
            return replace(taken, submit=taken.submit + whole.submit[self.first], epoch=whole.epoch)
        return taken


@dataclass(frozen=True)
class GeneratorSource:
    """An excerpt of a generated workload; equal settings produce equal jobs."""

    generator: str
    settings: str  # canonical JSON, the seed included
    first: int
    jobs: int | None
    without: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        """Name in messages."""
        return f"generator {self.generator}"

    @property
    def sha256(self) -> str:
        """Hash of the settings, in place of the hash of a trace file."""
        return digest(f"{self.generator} {self.settings}")

    def content(self) -> Json:
        """Return everything that a result depends on."""
        return {
            "generator": Component(name=self.generator).identity("generators"),
            "settings": Component(name=self.generator, **json.loads(self.settings)).identity("generators")["settings"],
            "first": self.first,
            "jobs": self.jobs,
            **_left_out(self.without),
        }

    def read(self, machine: Machine) -> Workload:
        """Generate the jobs; raises InputError for settings out of range, and for an excerpt beyond the end."""
        made = configure(self.generator, **json.loads(self.settings))
        whole = made.generate_on(machine) if hasattr(made, "generate_on") else made.generate()  # own classes may lack it
        if self.first or self.jobs is not None:
            whole = excerpt(whole, self.first, self.jobs or len(whole) - self.first)
        return without(whole, self.without)


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """Jobs that a function draws for the machine of a cell.

    Attributes
    ----------
    path : name in messages
    settings : everything that the jobs depend on, except the code of the function and the machine
    draw : picklable function of the machine
    """

    path: str
    settings: Json
    draw: Callable[[Machine], Workload]
    first: int = 0
    jobs: int | None = None
    without: tuple[int, ...] = ()

    @property
    def sha256(self) -> str:
        """Hash of the settings, in place of the hash of a trace file."""
        return digest(canonical(self.settings))

    def content(self) -> Json:
        """Return everything that a result depends on."""
        return {**self.settings, **_left_out(self.without)}

    def read(self, machine: Machine) -> Workload:
        """Draw the jobs."""
        return without(self.draw(machine), self.without)


def _left_out(ids: tuple[int, ...]) -> Json:
    """Return the entry of the content that lists omitted jobs; empty if there are none."""
    return {"without": list(ids)} if ids else {}


WorkloadSource = TraceSource | GeneratorSource | StateSource | FunctionSource
"""Source of the jobs of a cell."""


@dataclass(frozen=True, eq=False)
class Cell:
    """Everything that one simulation needs.

    Attributes
    ----------
    parameters : dotted path -> value as written, for each varied path; empty for a baseline
    seed : random seed of sensitivities and of the scheduler
    workload : source of the jobs
    machine, machine_content, machine_tables : machine, the content that results depend on, and the tables of a machine file
    scheduler, performance, warm_up : see the study file
    memory_use : model of the jobs' memory use, with its seed; None if jobs use the memory that they request
    sources : SHA-256 of the code that simulates the cell, see `cell_sources`
    costs : tables for watts and dollars; the simulation does not use them, so cells that differ only in costs share one run
    """

    parameters: Mapping[str, Parameter]
    seed: int
    workload: WorkloadSource
    machine: Machine
    machine_content: Json
    machine_tables: Json
    scheduler: SchedulerSection
    performance: PerformanceSection
    warm_up: int
    sources: str
    costs: Costs = field(default_factory=Costs)
    memory_use: Component | None = None

    @property
    def inputs(self) -> Json:
        """Resolved inputs; equal inputs give equal canonical JSON. Not cached, since a study may have a million cells."""
        return {
            "machine": self.machine_content,
            "workload": self.workload.content(),
            "scheduler": scheduler_content(self.scheduler),
            "performance": self._performance,
            "warm_up": self.warm_up,
            "seed": self.seed,
            **({} if self.memory_use is None else {"memory_use": self.memory_use.identity("memory_uses")}),
        }

    @property
    def _performance(self) -> Json:
        section, model = self.performance, self.performance.estimate_model
        estimate = section.estimate if model is None else model.identity("models")
        return {"model": section.model.identity("models"), "estimate": estimate}

    @cached_property
    def key(self) -> str:
        """SHA-256 of the inputs and of the code that simulates them; the key of the cell's record."""
        return digest(canonical({"inputs": self.inputs, "sources": self.sources}))

    @property
    def label(self) -> str:
        """Name in messages."""
        words = [f"{path}={value}" for path, value in self.parameters.items()]
        return " ".join([*words, f"seed={self.seed}"])

    def without(self, ids: tuple[int, ...]) -> Cell:
        """Return the cell without the jobs with some ids, (k,), of its workload, to measure their effect."""
        return replace(self, workload=replace(self.workload, without=ids))

    def baseline(self) -> Cell:
        """Return the baseline of fairness metrics: FCFS without backfilling, with the same machine, workload and memory."""
        fcfs = {"kind": "list", "order": Component(name="fcfs"), "backfill": Component(name="none"), "settings": {}}
        first = self.scheduler.model_copy(update=fcfs)
        names = {
            k: v
            for k, v in self.parameters.items()
            if k != "scheduler" and not k.startswith(("scheduler.order", "scheduler.backfill"))
        }
        return replace(self, scheduler=first, parameters={"baseline": "fcfs without backfilling", **names})

    def on(self, other: MachineDescription) -> Cell:
        """Return the baseline of throughput per memory dollar: the same jobs and scheduler on another machine."""
        names = {k: v for k, v in self.parameters.items() if k.partition(".")[0] != "machine"}
        named = {"memory baseline": other.machine.name, **names}
        return replace(
            self, machine=other.machine, machine_content=other.content, machine_tables=other.tables, parameters=named
        )


@dataclass(frozen=True)
class _Nodes:
    """Machine properties on which reading a trace depends: nodes and existing resources, but not the sizes of pools."""

    content: str
    machine: Machine = field(compare=False)

    @classmethod
    def of(cls, cell: Cell) -> _Nodes:
        present = [name for k, name in enumerate(cell.machine.resources) if cell.machine.capacity[:, k].any()]
        content = cell.machine_content
        nodes = [content["node"], content["rack"], content["order"]] if "node" in content else [content]
        return cls(canonical([*nodes, present]), cell.machine)


@lru_cache(maxsize=2)
def _workload(source: WorkloadSource, nodes: _Nodes) -> Workload:
    return source.read(nodes.machine)


def with_different_workloads(cells: Iterable[Cell]) -> list[Cell]:
    """Return the first cell of each workload, in the order of the cells."""
    first: dict[Hashable, Cell] = {}
    for cell in cells:
        first.setdefault((cell.workload, cell.memory_use, _Nodes.of(cell)), cell)
    return list(first.values())


def workload_of(cell: Cell) -> Workload:
    """Read the workload of a cell; cached in the process for the next cell with the same nodes."""
    workload = _workload(cell.workload, _Nodes.of(cell))
    if cell.memory_use is None:
        return workload
    source: MemoryUseSource = cell.memory_use.make("memory_uses")
    return source.applied(workload)


def initial_of(cell: Cell) -> Initial | None:
    """Return the jobs that are running when a cell begins; None if it does not start from a state."""
    return cell.workload.initial(cell.machine) if isinstance(cell.workload, StateSource) else None
