"""Simulation tasks of deployment plans, each cached under a hash of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poolwise import runner
from poolwise.arrays import FloatArray, IntArray
from poolwise.code_fingerprint import sources
from poolwise.engines import simulate
from poolwise.engines.dispatch import replay as compiled
from poolwise.hashing import canonical, digest
from poolwise.metrics.latency import Spread, job_latency_us
from poolwise.metrics.unit_use import dispatch_window, energy_j, purchase, unit_use
from poolwise.plans.deployment_file import DeploymentSection, JobsSection
from poolwise.random import uniform
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim

MEASURED = ("latency_us", "purchase_cost", "energy_j", "utilization", "jobs")


@dataclass(frozen=True, eq=False)
class Tables:
    """Contents of the files of a plan.

    Attributes
    ----------
    types : names of unit and task types
    affinity : (n_unit_type, n_task_type) operations per us
    prices : (n_unit_type,) price of a unit
    power : watts per unit type and task type
    tasks : tasks of the trace; None for generated jobs
    sha256 : file name -> hash
    """

    types: vinesim.Types
    affinity: FloatArray
    prices: FloatArray
    power: vinesim.Power
    tasks: vinesim.TaskList | None
    sha256: dict[str, str]


@dataclass(frozen=True)
class DeploymentTask:
    """One run: the number of units of each type, a policy and a seed, on the first `jobs` of the workload (None: all)."""

    counts: tuple[int, ...]
    placement: int
    seed: int
    jobs: int | None


@dataclass(frozen=True, eq=False)
class DeploymentTaskType(runner.TaskType[DeploymentTask]):
    """Task type of deployment plans: the plan and its tables."""

    section: DeploymentSection
    tables: Tables

    def key(self, task: DeploymentTask) -> str:
        """Return the SHA-256 of all inputs of the result."""
        section = self.section
        settings = section.model_dump(mode="json", include={"affinity_kind", "jobs", "inter_arrival", "racks", "latency"})
        types = [unit.type for unit in section.unit]
        chosen = section.placement[task.placement].identity("placements")
        inputs = [settings, types, chosen, self.tables.sha256, task.counts, task.seed, task.jobs]
        return digest(canonical({"inputs": inputs, "sources": sources(__name__)}))

    def label(self, task: DeploymentTask) -> str:
        """Return units, placement, seed and number of jobs as text."""
        counts = zip(self.section.unit, task.counts, strict=True)
        units = " ".join(f"{unit.type}={count}" for unit, count in counts)
        first = "" if task.jobs is None else f" jobs={task.jobs}"
        return f"{units} placement={self.section.placement[task.placement]} seed={task.seed}{first}"

    def prepare(self, tasks: Sequence[DeploymentTask]) -> None:
        """Compile the kernels of task dispatch."""
        compiled.load()

    def run(self, task: DeploymentTask) -> runner.Record:
        """Simulate one task."""
        tables, section = self.tables, self.section
        tasks = _first(self.tasks(task.seed), task.jobs)
        case = vinesim.VineSimCase.of(
            self.deployment(task.counts),
            tasks,
            tables.affinity,
            section.inter_arrival,
            prices=tables.prices,
            power=tables.power,
            types=tables.types,
            seed=task.seed,
        )
        placement = section.placement[task.placement].make("placements")
        result = simulate(
            case.machine, case.workload, Dispatch(placement), truth=case.model, estimate=case.estimate, seed=task.seed
        )
        schedule = result.schedule
        window, latency = dispatch_window(schedule), job_latency_us(schedule)
        finished = latency[~np.isnan(latency)]
        content = {
            "latency_us": float(getattr(Spread.of(finished), section.latency)),
            "purchase_cost": float(purchase(case.machine)),
            "energy_j": float(energy_j(schedule, window)),
            "utilization": float(unit_use(schedule, window).overall),
            "jobs": len(finished),
        }
        return runner.Record(content)

    def deployment(self, counts: Sequence[int]) -> vinesim.UnitList:
        """Distribute the units over the racks in turn, type by type."""
        names = self.tables.types.units
        units: list[tuple[int, int, int]] = []
        shelves = [0] * self.section.racks
        for unit, count in zip(self.section.unit, counts, strict=True):
            for _ in range(count):
                rack = len(units) % self.section.racks
                units.append((names.index(unit.type), rack, shelves[rack]))
                shelves[rack] += 1
        return vinesim.UnitList.of(units)

    def tasks(self, seed: int) -> vinesim.TaskList:
        """Return the tasks of the trace, or generate those of a seed."""
        if self.tables.tasks is not None:
            return self.tables.tasks
        assert self.section.jobs is not None  # the section requires one of both
        return draw_jobs(self.section.jobs, self.tables.types, seed)


def draw_jobs(section: JobsSection, types: vinesim.Types, seed: int) -> vinesim.TaskList:
    """Draw the size and the type of each job; the draws of a job do not depend on the number of jobs."""
    job = np.arange(section.count)
    group = _group(uniform(seed, "deployment.group", job), [size.share for size in section.size])
    least, most = (np.array([getattr(size, name) for size in section.size])[group] for name in ("least", "most"))
    sizes = least + (uniform(seed, "deployment.size", job) * (most - least + 1)).astype(np.int64)
    kinds = np.array([types.tasks.index(name) for name in section.types])
    chosen = kinds[_group(uniform(seed, "deployment.type", job), list(section.types.values()))]
    return vinesim.TaskList.of_jobs(sizes.tolist(), chosen.tolist(), section.operations)


def _group(draws: FloatArray, shares: Sequence[float]) -> IntArray:
    """Return (n,) index of the share that each draw in [0, 1) falls into."""
    return np.minimum(np.searchsorted(np.cumsum(shares), draws, side="right"), len(shares) - 1)


def _first(tasks: vinesim.TaskList, jobs: int | None) -> vinesim.TaskList:
    """Return the tasks of the first `jobs` jobs; all if None."""
    if jobs is None:
        return tasks
    return vinesim.TaskList.of(tasks.table[np.cumsum(tasks.first_of_job) <= jobs])
