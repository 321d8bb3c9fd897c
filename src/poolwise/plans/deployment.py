"""Plans of kind "deployment": the processing units to buy for a workload, and the placement policy to run on them.

Source: VineSim, sections 4.6 and 7; specs of the accelerators, "Outputs": fix the workload, search deployments and policies
for a utility under a budget, and show the Pareto front.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from poolwise import registry
from poolwise.arrays import FloatArray
from poolwise.files.document import Document
from poolwise.files.fields import Section
from poolwise.files.validation import validate
from poolwise.hashing import Json
from poolwise.optimize.front import search_front
from poolwise.optimize.monotone import Element
from poolwise.plans.deployment_answer import OTHER_COUNT, deployment_answer
from poolwise.plans.deployment_file import OBJECTIVES, DeploymentSection, counts_of
from poolwise.plans.deployment_tasks import DeploymentTaskType
from poolwise.plans.plan import PlanFile, ReportProgress
from poolwise.plans.unit_cells import PlanTables, check_gaps, check_placements, check_tables
from poolwise.presentation.answer import Answer
from poolwise.runner import TaskRunner
from poolwise.studies.cell_store import CellStore

RUNGS = 3
"""Rungs of successive halving: a ninth of the jobs, a third, all of them."""


class DeploymentFile(PlanFile):
    """A plan of the processing units to buy."""

    plan: DeploymentSection


@registry.register("plans", "deployment")
@dataclass(frozen=True, eq=False)
class Deployment:
    """The processing units to buy: the Pareto front of latency, purchase cost and energy, and the best for a utility.

    Attributes
    ----------
    task_type : the plan and its tables
    elements : positions of the candidates in the grid of counts and policies
    left_out : reason -> number of excluded candidates
    """

    file: ClassVar[type[Section]] = DeploymentFile

    task_type: DeploymentTaskType
    elements: tuple[Element, ...]
    left_out: dict[str, int]

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read a plan file; raise InputError with file, line, field and remedy."""
        check_tables(document, "deployment")
        section = validate(DeploymentSection, document, ("plan",))
        tables = PlanTables.read(section)
        _check_names(section, tables, document)
        task_type = DeploymentTaskType(section, tables)
        elements, left_out = _candidates(task_type)
        if not elements:
            reasons = "; ".join(f"{count:,}: {reason}" for reason, count in left_out.items())
            raise document.error(("plan", "unit"), f"no candidate is left ({reasons})", "widen the counts or raise the budget")
        return cls(task_type, elements, left_out)

    def count_jobs(self) -> int:
        """Count the jobs of the trace, or those that the first seed draws."""
        return int(self.task_type.tasks(0).first_of_job.sum())

    def answer(self, runner: TaskRunner[CellStore], tell: ReportProgress) -> Answer:
        """Simulate all candidates, or search a large set of candidates, and choose the best."""
        search, settings = _Search(self, runner, tell), self.task_type.section.search
        if len(self.elements) <= settings.exhaustive:
            measured = list(self.elements)
            search.measure(measured, RUNGS - 1)
        else:
            sample = min(settings.sample, len(self.elements))
            measured = search_front(self.elements, search.measure, RUNGS, sample, settings.seed)
        return deployment_answer(self.task_type, self.elements, self.left_out, measured, search.runs, search.n_runs)


@dataclass
class _Search:
    """Measures candidates rung by rung, and keeps the runs of the last rung."""

    plan: Deployment
    runner: TaskRunner[CellStore]
    tell: ReportProgress
    runs: dict[Element, list[Json]] = field(default_factory=dict)
    n_runs: int = 0

    def measure(self, elements: Sequence[Element], rung: int) -> FloatArray:
        """Return (n, 3) objectives; lower rungs use one seed and only the first jobs."""
        task_type, whole = self.plan.task_type, rung == RUNGS - 1
        seeds = task_type.section.seeds if whole else 1
        cells = task_type.cells(elements, seeds, None if whole else max(1, self.plan.count_jobs() // 3 ** (RUNGS - 1 - rung)))
        self.tell(f"rung {rung + 1} of {RUNGS}: {len(elements):,} candidates, {len(cells):,} runs")
        found = self.runner.records(task_type, cells)
        self.n_runs += len(cells)
        if whole:
            self.runs |= {element: found[k * seeds : (k + 1) * seeds] for k, element in enumerate(elements)}
        values = np.array([[run[name] for name in OBJECTIVES] for run in found], dtype=np.float64)
        means: FloatArray = values.reshape(len(elements), seeds, len(OBJECTIVES)).mean(axis=1)
        return means


def _check_names(section: DeploymentSection, tables: PlanTables, document: Document) -> None:
    names = [unit.type for unit in section.unit]
    for k, name in enumerate(names):
        path = ("plan", "unit", k, "type")
        if name not in tables.types.units:
            raise document.unknown(path, "unit type", name, list(tables.types.units))
        if names.index(name) < k:
            raise document.error(path, f"'{name}' appears twice", "name each type once")
        if np.isnan(tables.unit_prices[tables.types.units.index(name)]):
            raise document.error(path, f"'{name}' has no price", "add its row to the price list")
    for name in section.jobs.types if section.jobs is not None else ():
        if name not in tables.types.tasks:
            raise document.unknown(("plan", "jobs", "types"), "task type", name, list(tables.types.tasks))
    check_placements(section, document)
    check_gaps(section.inter_arrival, document, "plan", "inter_arrival")


def _candidates(task_type: DeploymentTaskType) -> tuple[tuple[Element, ...], dict[str, int]]:
    """Return the combinations within the budget that can run all tasks, and reason -> number of excluded ones."""
    section, tables = task_type.section, task_type.tables
    kinds = np.unique(np.concatenate([task_type.tasks(seed).column("task_type") for seed in range(section.seeds)]))
    numbers = np.array([tables.types.units.index(unit.type) for unit in section.unit], dtype=np.int64)
    can = tables.affinity[numbers][:, kinds] > 0
    prices = tables.unit_prices[numbers]
    candidates: list[Element] = []
    left_out: dict[str, int] = {}
    for places in itertools.product(*(range(len(unit.numbers())) for unit in section.unit)):
        counts = np.array(counts_of(section, places))
        reason = None
        if section.units is not None and counts.sum() != section.units:
            reason = OTHER_COUNT
        elif section.budget is not None and float(prices @ counts) > section.budget:
            reason = "cost above the budget"
        elif not can[counts > 0].any(axis=0).all():
            reason = "no unit can run some of the tasks"
        if reason is None:
            candidates += [(*places, k) for k in range(len(section.placement))]
        else:
            left_out[reason] = left_out.get(reason, 0) + len(section.placement)
    return tuple(candidates), left_out
