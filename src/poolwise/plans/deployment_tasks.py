"""Cells of deployment plans: numbers of units of each type, under a placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.hashing import Json
from poolwise.model import Machine, Workload
from poolwise.optimize.monotone import Element
from poolwise.plans.deployment_file import DeploymentSection, JobsSection, counts_of
from poolwise.plans.unit_cells import PlanTables, UnitCells, unit_cell
from poolwise.random import uniform
from poolwise.studies.cells import Cell, Drawn
from poolwise.traces import vinesim

MEASURED = ("latency_us", "purchase_cost", "energy_j", "utilization", "jobs")


@dataclass(frozen=True, eq=False)
class DeploymentTaskType(UnitCells):
    """Task type of deployment plans: the plan and its tables."""

    min_tasks_per_process = 20  # the runs are short

    section: DeploymentSection
    tables: PlanTables

    def cells(self, elements: Sequence[Element], seeds: int, jobs: int | None = None) -> list[Cell]:
        """Return the cells of each candidate with each seed, on the first `jobs` of the workload (None: all)."""
        drawn, places = [self.jobs(seed, jobs) for seed in range(seeds)], self.tasks(0, jobs).places
        machines: dict[tuple[int, ...], Machine] = {}
        cells = []
        for element in elements:
            counts, how = counts_of(self.section, element), self.placement(element[-1])
            if counts not in machines:
                machines[counts] = self.machine(counts, places)
            units = {unit.type: count for unit, count in zip(self.section.unit, counts, strict=True)}
            inputs = {
                "units": units,
                "racks": self.section.racks,
                "kind": self.section.affinity_kind,
                "files": self.tables.sha256,
            }
            parameters: dict[str, str | int] = {
                **units,
                "placement": str(how.placement),
                **({} if jobs is None else {"jobs": jobs}),
            }
            cells += [unit_cell(parameters, k, machines[counts], inputs, source, how) for k, source in enumerate(drawn)]
        return cells

    def machine(self, counts: Sequence[int], places: Sequence[tuple[int, int]]) -> Machine:
        """Build the machine, with the units distributed over the racks in turn, type by type."""
        tables, racks = self.tables, self.section.racks
        units: list[tuple[int, int, int]] = []
        shelves = [0] * racks
        for unit, count in zip(self.section.unit, counts, strict=True):
            for _ in range(count):
                rack = len(units) % racks
                units.append((tables.types.units.index(unit.type), rack, shelves[rack]))
                shelves[rack] += 1
        return tables.machine(vinesim.UnitList.of(units), places=places)

    def jobs(self, seed: int, jobs: int | None) -> Drawn:
        """Return the first jobs of the trace, or of those that a seed draws."""
        section, tables = self.section, self.tables
        settings: Json = section.model_dump(mode="json", include={"jobs", "inter_arrival"})
        settings |= {"files": tables.sha256, "seed": seed, "first": jobs}
        draw = partial(_workload, tables.files.get("trace") or section.jobs, tables.types, section.inter_arrival, seed, jobs)
        return Drawn(str(tables.files.get("trace", "jobs")), settings, draw)

    def tasks(self, seed: int, jobs: int | None = None) -> vinesim.TaskList:
        """Return the tasks of the first jobs."""
        return _tasks(self.tables.files.get("trace") or self.section.jobs, self.tables.types, seed, jobs)


def _workload(
    source: Path | JobsSection | None, types: vinesim.Types, gaps: str, seed: int, jobs: int | None, machine: Machine
) -> Workload:
    tasks = _tasks(source, types, seed, jobs)
    arrivals = vinesim.InterArrival.parse(gaps).times(int(tasks.first_of_job.sum()), seed)
    return vinesim.workload_of_tasks(tasks, machine, arrivals)


def _tasks(source: Path | JobsSection | None, types: vinesim.Types, seed: int, jobs: int | None) -> vinesim.TaskList:
    """Return the tasks of the first `jobs` jobs of a trace, or of those that a seed draws."""
    assert source is not None  # the section requires a trace or jobs
    tasks = _trace(source, types) if isinstance(source, Path) else draw_jobs(source, types, seed)
    return tasks if jobs is None else vinesim.TaskList.of(tasks.table[np.cumsum(tasks.first_of_job) <= jobs])


@lru_cache(maxsize=2)
def _trace(path: Path, types: vinesim.Types) -> vinesim.TaskList:
    return vinesim.read_tasks(path, types)


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
