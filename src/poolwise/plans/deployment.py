"""Plans of kind "deployment": the processing units to buy for a workload, and the placement policy to run on them.

Source: VineSim, sections 4.6 and 7; specs of the accelerators, "Outputs": fix the workload, search deployments and policies
for a utility under a budget, and show the Pareto front.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from poolwise import registry
from poolwise.arrays import FloatArray
from poolwise.errors import InputError
from poolwise.files.document import Document
from poolwise.files.fields import Section, validate
from poolwise.hashing import Json, digest
from poolwise.optimize.front import search_front
from poolwise.optimize.monotone import Element
from poolwise.plans.deployment_answer import OTHER_COUNT, deployment_answer
from poolwise.plans.deployment_file import OBJECTIVES, DeploymentSection, counts_of
from poolwise.plans.deployment_tasks import DeploymentTask, DeploymentTaskType, Tables
from poolwise.plans.plan import Answer, PlanFile, ReportProgress
from poolwise.policies.placement.units.policy import UnitPolicy
from poolwise.runner import Executor, Store, records
from poolwise.runner.progress import LineProgress
from poolwise.traces import vinesim
from poolwise.traces.vinesim.affinity import count_columns

RUNGS = 3
"""Rungs of successive halving: a ninth of the jobs, a third, all of them."""
MIN_RUNS_PER_WORKER = 20
"""Minimum number of runs for a further worker process, since the runs are short."""


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
        for name in document.tables:
            if name not in ("version", "title", "plan"):
                raise document.error((name,), f"a deployment plan cannot have [{name}]", "write everything under [plan]")
        section = validate(DeploymentSection, document, ("plan",))
        tables = _tables(section, document)
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

    def answer(self, out: Path, executor: Executor, tell: ReportProgress) -> Answer:
        """Simulate all candidates, or search a large set of candidates, and choose the best."""
        store = Store(out)
        with store.writing():
            search = _Search(self, store, executor, tell)
            section = self.task_type.section
            if len(self.elements) <= section.search.exhaustive:
                measured = list(self.elements)
                search.measure(measured, RUNGS - 1)
            else:
                sample, seed = min(section.search.sample, len(self.elements)), section.search.seed
                measured = search_front(self.elements, search.measure, RUNGS, sample, seed)
            return deployment_answer(self.task_type, self.elements, self.left_out, measured, search.runs, search.n_runs)


class _Search:
    """Measures candidates rung by rung, and stores the runs of the last rung."""

    def __init__(self, plan: Deployment, store: Store, executor: Executor, report: ReportProgress) -> None:
        self._plan, self._store, self._executor, self._report = plan, store, executor, report
        self.runs: dict[Element, list[Json]] = {}
        self.n_runs = 0

    def measure(self, elements: Sequence[Element], rung: int) -> FloatArray:
        """Return (n, 3) objectives; lower rungs use one seed and only the first jobs."""
        section, whole = self._plan.task_type.section, rung == RUNGS - 1
        seeds = section.seeds if whole else 1
        jobs = None if whole else max(1, self._jobs() // 3 ** (RUNGS - 1 - rung))
        tasks = [DeploymentTask(counts_of(section, e), e[-1], seed, jobs) for e in elements for seed in range(seeds)]
        self._report(f"rung {rung + 1} of {RUNGS}: {len(elements):,} candidates, {len(tasks):,} runs")
        progress = LineProgress(self._report)
        found = records(self._plan.task_type, tasks, self._store, self._executor, progress, MIN_RUNS_PER_WORKER)
        self.n_runs += len(tasks)
        each = [found[k : k + seeds] for k in range(0, len(found), seeds)]
        if whole:
            self.runs |= dict(zip(elements, each, strict=True))
        return np.array([[np.mean([run[name] for run in runs]) for name in OBJECTIVES] for runs in each]).reshape(-1, 3)

    def _jobs(self) -> int:
        return self._plan.count_jobs()


def _tables(section: DeploymentSection, document: Document) -> Tables:
    """Read the files that the plan names."""
    paths = {name: getattr(section, name) for name in ("types", "affinity", "prices", "power", "trace")}
    files: dict[str, Path] = {}
    for name, reference in paths.items():
        if reference is not None:
            files[name] = document.resolve_file(("plan", name), reference)
            if not files[name].is_file():
                raise document.error(("plan", name), f"no such file: {reference}", "give a path relative to the plan")
    types = vinesim.Types.read(files["types"]) if "types" in files else vinesim.Types()
    return Tables(
        types,
        vinesim.read_affinity(files["affinity"], section.affinity_kind, types),
        vinesim.read_prices(files["prices"], types),
        vinesim.read_power(files["power"], types, count_columns(files["affinity"])),
        vinesim.read_tasks(files["trace"], types) if "trace" in files else None,
        {file.name: digest(file.read_bytes()) for file in files.values()},
    )


def _check_names(section: DeploymentSection, tables: Tables, document: Document) -> None:
    names = [unit.type for unit in section.unit]
    for k, name in enumerate(names):
        path = ("plan", "unit", k, "type")
        if name not in tables.types.units:
            raise document.unknown(path, "unit type", name, list(tables.types.units))
        if names.index(name) < k:
            raise document.error(path, f"'{name}' appears twice", "name each type once")
        if np.isnan(tables.prices[tables.types.units.index(name)]):
            raise document.error(path, f"'{name}' has no price", "add its row to the price list")
    for name in section.jobs.types if section.jobs is not None else ():
        if name not in tables.types.tasks:
            raise document.unknown(("plan", "jobs", "types"), "task type", name, list(tables.types.tasks))
    for k, choice in enumerate(section.placement):
        try:
            policy = choice.make("placements")
        except InputError as error:
            raise document.error(("plan", "placement"), error.message, error.remedy) from error
        if not isinstance(policy, UnitPolicy):
            remedy = "choose flat, high, pref, closer_to_data, earliest_finish or delay"
            problem = f"'{choice.name}' (number {k + 1}) does not place single tasks"
            raise document.error(("plan", "placement"), problem, remedy)
    try:
        vinesim.InterArrival.parse(section.inter_arrival)
    except InputError as error:
        raise document.error(("plan", "inter_arrival"), error.message, error.remedy) from error


def _candidates(task_type: DeploymentTaskType) -> tuple[tuple[Element, ...], dict[str, int]]:
    """Return the combinations within the budget that can run all tasks, and reason -> number of excluded ones."""
    section, tables = task_type.section, task_type.tables
    kinds = np.unique(np.concatenate([task_type.tasks(seed).column("task_type") for seed in range(section.seeds)]))
    numbers = np.array([tables.types.units.index(unit.type) for unit in section.unit], dtype=np.int64)
    can = tables.affinity[numbers][:, kinds] > 0
    prices = tables.prices[numbers]
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
