"""A cell of a study: one machine, workload, scheduler, set of parameters and seed; all that one simulation depends on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from poolwise.code_fingerprint import sources
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.costs import Costs
from poolwise.files.factory import scheduler_content
from poolwise.files.machine import Described
from poolwise.files.study import PerformanceSection, SchedulerSection
from poolwise.hashing import Json, canonical, digest
from poolwise.model import Initial, Machine, Workload
from poolwise.studies.initial_state import SavedState
from poolwise.traces import read, stretch, without
from poolwise.traces.generators import generate
from poolwise.traces.memory_use.source import MemoryUseSource

Parameter = str | int | float | bool


def cell_sources() -> str:
    """SHA-256 over the files of Poolwise that simulating a cell can execute."""
    return sources("poolwise.studies.cell_simulation")


@dataclass(frozen=True)
class Trace:
    """A stretch of a trace file, and the bytes it must have."""

    path: str
    sha256: str
    format: str
    options: str  # canonical JSON, so that a trace is hashable
    first: int
    jobs: int | None
    clock: str = "first job"  # or "trace", see the study file
    without: tuple[int, ...] = ()  # ids of jobs of the stretch that are left out, to see what depends on them

    def content(self) -> Json:
        """What a result depends on."""
        return {
            "sha256": self.sha256,
            "format": "auto" if self.format == "auto" else Component(name=self.format).identity("formats"),
            "options": Component(name=self.format, **json.loads(self.options)).hashed_settings,
            "first": self.first,
            "jobs": self.jobs,
            "clock": self.clock,
            **_left_out(self.without),
        }

    def read(self, machine: Machine) -> Workload:
        """Read the jobs as they stand on a machine; raises InputError, also if the file has changed meanwhile."""
        return without(self._read(machine), self.without)

    def _read(self, machine: Machine) -> Workload:
        path = Path(self.path)
        if digest(path.read_bytes()) != self.sha256:
            raise InputError("the trace changed while the study ran", file=path, remedy="run the study again")
        whole = read(path, machine, format=self.format, **json.loads(self.options))
        left = len(whole) - self.first
        if left < (self.jobs or 1):
            raise InputError(
                f"the trace has {len(whole)} jobs; a stretch of {self.jobs or 1} from {self.first} on goes beyond its end",
                file=path,
                field="workload.jobs" if self.jobs else "workload.first",
                remedy="take fewer, or start earlier",
            )
        if self.clock == "trace" and not self.first and self.jobs is None:
            return whole
        taken = stretch(whole, self.first, self.jobs or left)
        if self.clock == "trace":
            return replace(taken, submit=taken.submit + whole.submit[self.first])
        return taken


@dataclass(frozen=True)
class Generated:
    """A stretch of a generated workload; the same settings draw the same jobs."""

    generator: str
    settings: str  # canonical JSON, the seed included
    first: int
    jobs: int | None
    without: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        """What messages call it."""
        return f"generator {self.generator}"

    @property
    def sha256(self) -> str:
        """Hash of the settings, in the place of a trace's bytes."""
        return digest(f"{self.generator} {self.settings}")

    def content(self) -> Json:
        """What a result depends on."""
        return {
            "generator": Component(name=self.generator).identity("generators"),
            "settings": Component(name=self.generator, **json.loads(self.settings)).hashed_settings,
            "first": self.first,
            "jobs": self.jobs,
            **_left_out(self.without),
        }

    def read(self, machine: Machine) -> Workload:
        """Draw the jobs; raises InputError for settings out of range and for a stretch beyond the end."""
        whole = generate(self.generator, **json.loads(self.settings))
        if self.first or self.jobs is not None:
            whole = stretch(whole, self.first, self.jobs or len(whole) - self.first)
        return without(whole, self.without)


def _left_out(ids: tuple[int, ...]) -> Json:
    """What a result depends on; nothing where no job is left out."""
    return {"without": list(ids)} if ids else {}


@dataclass(frozen=True, eq=False)
class Cell:
    """Everything that one simulation needs, and nothing else.

    Attributes
    ----------
    parameters : dotted path -> value as written, of what the study varies; empty for a baseline
    seed : draws sensitivities and whatever a scheduler draws
    machine, machine_content, machine_tables : the machine, what a result depends on in it, and what a file says about it
    trace, scheduler, performance, warm_up : see the study file
    memory_use : what says which memory the jobs use, with its seed; None: they use what they ask for
    sources : SHA-256 of the code that simulates it, see `cell_sources`
    costs : where watts and dollars come from; no input of the simulation, so that cells which differ in it alone share one run
    """

    parameters: Mapping[str, Parameter]
    seed: int
    machine: Machine
    machine_content: Json
    machine_tables: Json
    trace: Trace | Generated | SavedState
    scheduler: SchedulerSection
    performance: PerformanceSection
    warm_up: int
    sources: str
    costs: Costs = field(default_factory=Costs)
    memory_use: Component | None = None

    @property
    def inputs(self) -> Json:
        """The resolved inputs, canonical: equal inputs give equal text. Made anew each time: there may be a million cells."""
        return {
            "machine": self.machine_content,
            "workload": self.trace.content(),
            "scheduler": scheduler_content(self.scheduler),
            "performance": self._performance,
            "warm_up": self.warm_up,
            "seed": self.seed,
            **({} if self.memory_use is None else {"memory_use": self.memory_use.identity("memory_uses")}),
        }

    @property
    def _performance(self) -> Json:
        section, believed = self.performance, self.performance.estimate_model
        estimate = section.estimate if believed is None else believed.identity("models")
        return {"model": section.model.identity("models"), "estimate": estimate}

    @cached_property
    def key(self) -> str:
        """SHA-256 of the inputs and of the code that simulates them; names the cell's files."""
        return digest(canonical({"inputs": self.inputs, "sources": self.sources}))

    @property
    def label(self) -> str:
        """What messages call the cell."""
        words = [f"{path}={value}" for path, value in self.parameters.items()]
        return " ".join([*words, f"seed={self.seed}"])

    def without(self, ids: tuple[int, ...]) -> Cell:
        """Return the same run without some jobs of its workload, (k,) ids: what depends on them shows in the difference."""
        return replace(self, trace=replace(self.trace, without=ids))

    def baseline(self) -> Cell:
        """Return FCFS without backfilling on the same machine, workload and memory: the measure of fairness."""
        fcfs = {"kind": "list", "order": Component(name="fcfs"), "backfill": Component(name="none"), "settings": {}}
        first = self.scheduler.model_copy(update=fcfs)
        names = {
            k: v
            for k, v in self.parameters.items()
            if k != "scheduler" and not k.startswith(("scheduler.order", "scheduler.backfill"))
        }
        return replace(self, scheduler=first, parameters={"baseline": "fcfs without backfilling", **names})

    def on(self, there: Described) -> Cell:
        """Return the same jobs under the same scheduler on another machine: the measure of what memory dollars gain."""
        names = {k: v for k, v in self.parameters.items() if k.partition(".")[0] != "machine"}
        named = {"memory baseline": there.machine.name, **names}
        return replace(
            self, machine=there.machine, machine_content=there.content, machine_tables=there.tables, parameters=named
        )


@dataclass(frozen=True)
class _Nodes:
    """What reading a trace depends on: the nodes, and which resources exist. The size of pools does not count."""

    content: str
    machine: Machine = field(compare=False)

    @classmethod
    def of(cls, cell: Cell) -> _Nodes:
        present = [name for k, name in enumerate(cell.machine.resources) if cell.machine.capacity[:, k].any()]
        content = cell.machine_content
        nodes = [content["node"], content["rack"], content["order"]] if "node" in content else [content]
        return cls(canonical([*nodes, present]), cell.machine)


@lru_cache(maxsize=2)
def _workload(trace: Trace | Generated | SavedState, nodes: _Nodes) -> Workload:
    return trace.read(nodes.machine)


def workload_of(cell: Cell) -> Workload:
    """Read the workload of a cell; kept in the process for the next cell on the same nodes."""
    workload = _workload(cell.trace, _Nodes.of(cell))
    if cell.memory_use is None:
        return workload
    source: MemoryUseSource = cell.memory_use.make("memory_uses")
    return source.applied(workload)


def initial_of(cell: Cell) -> Initial | None:
    """What runs already when a cell begins, None where nothing does."""
    return cell.trace.initial(cell.machine) if isinstance(cell.trace, SavedState) else None
