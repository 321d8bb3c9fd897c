"""Plans of kind "deployment": the processing units to buy for a workload, and the placement policy to run on them.

Source: VineSim, sections 4.6 and 7; specs of the accelerators, "Outputs": fix the workload, search deployments and policies for
the best utility under a budget, and show the Pareto front.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from poolwise import registry
from poolwise.files.document import Document
from poolwise.files.fields import Section
from poolwise.files.validation import validate
from poolwise.hashing import Json
from poolwise.optimize.monotone import Element
from poolwise.performance.affinity import rates
from poolwise.plans.deployment_answer import OBJECTIVES, OTHER_COUNT, deployment_answer
from poolwise.plans.deployment_file import DeploymentSection
from poolwise.plans.front_search import FrontSearch
from poolwise.plans.plan import PlanFile, ReportProgress
from poolwise.plans.sizes import Size
from poolwise.plans.units import (
    UnitMeasurement,
    UnitStudy,
    check_gaps,
    check_placements,
    check_types,
    component_tables,
)
from poolwise.presentation.answer import Answer
from poolwise.runner import TaskRunner
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell, workload_of
from poolwise.traces.vinesim import Types


class DeploymentFile(PlanFile):
    """A plan of the processing units to buy."""

    plan: DeploymentSection


@registry.register("plans", "deployment")
@dataclass(frozen=True, eq=False)
class Deployment:
    """The processing units to buy: the Pareto front of latency, purchase cost and energy, and the candidate of least utility.

    Attributes
    ----------
    section : [plan]
    study : the plan as a study, with one unit of each type
    sizes : numbers of units of each type
    elements : positions of the candidates in the grid of counts and policies
    left_out : reason -> number of excluded candidates
    """

    file: ClassVar[type[Section]] = DeploymentFile

    section: DeploymentSection
    study: UnitStudy
    sizes: tuple[Size, ...]
    elements: tuple[Element, ...]
    left_out: dict[str, int]

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read a plan file; raise InputError with file, line, field and remedy."""
        section = validate(DeploymentFile, document).plan
        _check_names(section, document)
        machine: Json = {"units": {unit.type: 1 for unit in section.unit}, "racks": section.racks}
        if section.trace is not None:
            machine["data"] = section.files("trace")["trace"]
        study = UnitStudy.of(document, section, section.workload()[0], machine, None)
        prices = study.first[0].machine.attributes["price"]
        sizes = tuple(unit.size(float(prices[k])) for k, unit in enumerate(section.unit))
        elements, left_out = _candidates(section, study, sizes)
        if not elements:
            reasons = "; ".join(f"{count:,}: {reason}" for reason, count in left_out.items())
            raise document.error(("plan", "unit"), f"no candidate remains ({reasons})", "widen the counts or raise the budget")
        return cls(section, study, sizes, elements, left_out)

    def count_jobs(self) -> int:
        """Count the jobs of the trace, or the jobs drawn with the first seed."""
        return self.study.count_jobs()

    def sample_runs(self) -> Sequence[Cell]:
        """Return the runs of the smallest candidate with each placement."""
        return self.study.cells({"scheduler.placement": component_tables(self.section.placement)})

    def cells(self, elements: Sequence[Element], part: int = 1) -> list[Cell]:
        """Return the cells of each candidate with each seed, or with one seed on the first 1/`part` of the jobs."""
        settings = {} if part == 1 else {"seeds": {"count": 1}, self.section.workload()[1]: max(1, self.count_jobs() // part)}
        cells: list[Cell] = []
        for element in elements:
            vary: Json = {size.key: [size.written[k]] for size, k in zip(self.sizes, element, strict=False)}
            vary["scheduler.placement"] = component_tables([self.section.placement[element[-1]]])
            cells += self.study.cells(vary, settings)
        return cells

    def answer(self, runner: TaskRunner[CellStore], tell: ReportProgress) -> Answer:
        """Simulate all candidates, or search among them if there are many, and choose the best."""
        search = FrontSearch(UnitMeasurement(self.section.latency), self.cells, OBJECTIVES, runner, tell)
        search.search(self.elements, self.section.search)
        return deployment_answer(self.section, self.study, self.sizes, self.elements, self.left_out, search)


def _check_names(section: DeploymentSection, document: Document) -> None:
    names, types = [unit.type for unit in section.unit], Types.of(section.types)
    check_types(document, "unit type", types.units, ((("unit", k, "type"), name) for k, name in enumerate(names)))
    for k, name in enumerate(names):
        if names.index(name) < k:
            raise document.error(("plan", "unit", k, "type"), f"'{name}' appears twice", "name each type once")
    tasks = section.jobs.types if section.jobs is not None else ()
    check_types(document, "task type", types.tasks, ((("jobs", "types"), name) for name in tasks))
    check_placements(section, document)
    check_gaps(section.inter_arrival, document, "inter_arrival")


def _candidates(
    section: DeploymentSection, study: UnitStudy, sizes: Sequence[Size]
) -> tuple[tuple[Element, ...], dict[str, int]]:
    """Return the combinations within the budget that can run all tasks, and reason -> number of excluded ones."""
    kinds = np.unique(np.concatenate([workload_of(cell).attributes["task_type"] for cell in study.first]))
    can = rates(study.first[0].machine)[kinds, : len(sizes)] > 0
    prices = np.array([size.price[1] for size in sizes])
    candidates: list[Element] = []
    left_out: dict[str, int] = {}
    for places in itertools.product(*(range(len(size.written)) for size in sizes)):
        counts = np.array([size.amount[k] for size, k in zip(sizes, places, strict=True)])
        reason = None
        if section.units is not None and counts.sum() != section.units:
            reason = OTHER_COUNT
        elif section.budget is not None and float(prices @ counts) > section.budget:
            reason = "cost above the budget"
        elif not can[:, counts > 0].any(axis=1).all():
            reason = "no unit can run some of the tasks"
        if reason is None:
            candidates += [(*places, k) for k in range(len(section.placement))]
        else:
            left_out[reason] = left_out.get(reason, 0) + len(section.placement)
    return tuple(candidates), left_out
