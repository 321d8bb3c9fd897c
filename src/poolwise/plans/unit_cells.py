"""Cells of deployment and dispatch plans: tasks on processing units, under a queue order and a placement for single tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.code_fingerprint import sources
from poolwise.engines.dispatch import replay as compiled
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.study import PerformanceSection, SchedulerSection
from poolwise.hashing import Json, canonical, digest
from poolwise.metrics.latency import Spread, job_latency_us
from poolwise.metrics.unit_use import dispatch_window, energy_j, purchase, unit_use
from poolwise.model import Machine, Schedule
from poolwise.plans.deployment_file import DeploymentSection
from poolwise.plans.dispatch_file import DispatchSection
from poolwise.policies.placement.units.policy import UnitPolicy
from poolwise.runner.task_type import Record
from poolwise.studies.cell_simulation import Cells, run_cell
from poolwise.studies.cells import Cell, Drawn, Trace, cell_sources, workload_of
from poolwise.traces import vinesim
from poolwise.traces.vinesim.tables import count_columns
from poolwise.units import US

FILES = ("deployment", "affinity", "power", "prices", "types", "trace")
"""Keys of plans that name files."""
PERFORMANCE = PerformanceSection(model=Component.of("combined", {"models": ["affinity", "transfer"]}))
"""Execution times from affinities and transfers."""


@dataclass(frozen=True, eq=False)
class UnitCells(Cells):
    """Base of the task types that measure latency, energy and use of units; results depend on the settings of the plan."""

    section: DeploymentSection | DispatchSection

    def key(self, task: Cell) -> str:
        """Return the SHA-256 of a cell and of what is measured."""
        return digest(canonical([task.key, self.settings(), sources(type(self).__module__)]))

    def settings(self) -> Json:
        """Return the settings of the plan that measurements depend on."""
        return {"latency": self.section.latency}

    def prepare(self, tasks: Sequence[Cell]) -> None:
        """Compile the kernels of task dispatch."""
        compiled.load()

    def run(self, task: Cell) -> Record:
        """Simulate and measure a cell; raise InputError if the order needs a column that the workload lacks."""
        workload = workload_of(task)
        result = run_cell(task, workload)
        counts = {"excluded": dict(workload.excluded), "repaired": dict(workload.repaired)}
        return Record({**self.measured(result.schedule), "engine": result.engine, "read": counts})

    def measured(self, schedule: Schedule) -> Json:
        """Return the measurements of a schedule; None if undefined."""
        latency, window = job_latency_us(schedule), dispatch_window(schedule)
        use, finished = unit_use(schedule, window), ~np.isnan(latency)
        return {
            "latency_us": float(getattr(Spread.of(latency[finished & self.counted(schedule)]), self.section.latency)),
            "purchase_cost": none_if_nan(purchase(schedule.machine)),
            "energy_j": none_if_nan(energy_j(schedule, window)),
            "utilization": float(use.overall),
            "by_type": use.by_type(),
            "makespan_us": (window.end - window.begin) / US,
            "jobs": int(finished.sum()),
        }

    def counted(self, schedule: Schedule) -> BoolArray:
        """Return (n_job,) jobs whose latency counts: all."""
        return np.ones(len(job_latency_us(schedule)), dtype=np.bool_)

    def placement(self, k: int) -> SchedulerSection:
        """Return task dispatch with the k-th placement of the plan."""
        return SchedulerSection(kind="dispatch", placement=self.section.placement[k])


def unit_cell(
    parameters: Mapping[str, str | int], seed: int, machine: Machine, inputs: Json, jobs: Trace | Drawn, how: SchedulerSection
) -> Cell:
    """Return a cell of tasks on units; `inputs` are everything that the machine depends on."""
    return Cell(parameters, seed, machine, inputs, {}, jobs, how, PERFORMANCE, 0, cell_sources())


def none_if_nan(value: float) -> float | None:
    """Return a number, or None for NaN."""
    return None if np.isnan(value) else float(value)


# Files and names of a plan


def check_tables(document: Document, kind: str) -> None:
    """Raise InputError for a table other than [plan]."""
    for name in document.tables:
        if name not in ("version", "title", "plan"):
            raise document.error((name,), f"a {kind} plan cannot have [{name}]", "write everything under [plan]")


@dataclass(frozen=True, eq=False)
class PlanTables:
    """Contents of the files that a plan names.

    Attributes
    ----------
    files : key of the plan -> path
    types : names of unit and task types
    affinity : (n_unit_type, n_task_type) operations per us
    prices : (n_unit_type,) price of a unit, None without a price list
    power : watts per unit type and task type, None without a power table
    """

    files: Mapping[str, Path]
    types: vinesim.Types
    affinity: FloatArray
    prices: FloatArray | None
    power: vinesim.Power | None

    @classmethod
    def read(cls, section: DeploymentSection | DispatchSection) -> PlanTables:
        """Read the files; raise InputError for an invalid one."""
        files = {key: Path(name) for key in FILES if (name := getattr(section, key, None)) is not None}
        types = vinesim.Types.of(files.get("types"))
        affinity = vinesim.read_affinity(files["affinity"], section.affinity_kind, types)
        prices = vinesim.read_prices(files["prices"], types) if "prices" in files else None
        columns = count_columns(files["affinity"])
        power = vinesim.read_power(files["power"], types, columns) if "power" in files else None
        return cls(files, types, affinity, prices, power)

    @property
    def unit_prices(self) -> FloatArray:
        """Prices, of a plan that has a price list."""
        assert self.prices is not None
        return self.prices

    @cached_property
    def sha256(self) -> dict[str, str]:
        """File name -> hash."""
        return {file.name: digest(file.read_bytes()) for file in self.files.values()}

    def machine(self, units: vinesim.UnitList, name: str = "deployment", places: Sequence[tuple[int, int]] = ()) -> Machine:
        """Build the machine of some units, with data at some places."""
        power, types = self.power, self.types
        return vinesim.machine_of_units(units, self.affinity, places, prices=self.prices, power=power, types=types, name=name)


def check_gaps(text: str, document: Document, *path: str | int) -> None:
    """Raise InputError for invalid inter-arrival times."""
    try:
        vinesim.InterArrival.parse(text)
    except InputError as error:
        raise document.error(path, error.message, error.remedy) from error


def check_placements(section: DeploymentSection | DispatchSection, document: Document) -> None:
    """Raise InputError for a placement that does not place single tasks."""
    for choice in section.placement:
        with document.errors_at("plan", "placement"):
            policy = choice.make("placements")
            if not isinstance(policy, UnitPolicy):
                remedy = "choose flat, high, pref, closer_to_data, earliest_finish or delay"
                raise InputError(f"'{choice.name}' does not place single tasks", field="placement", remedy=remedy)
            policy.check_settings()
