"""Runs of the Fair Memory reproduction: machines, groups of simulations, and their metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.engines import simulate
from poolwise.hashing import Json
from poolwise.interfaces import BackfillPolicy, QueuePolicy
from poolwise.metrics import Outcomes, Window, paper_population, summarize
from poolwise.metrics.memory import degradation, memory_utilization, utilization_histogram
from poolwise.metrics.slowdown import bounded_slowdown
from poolwise.metrics.window import after_warm_up
from poolwise.model import Machine, Workload
from poolwise.model.rules import PoolScope
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import F1, FAIR, FCFS, FM, SJF, WFP3
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.reproductions.fair_memory.readings import BACKFILLS, BackfillName
from poolwise.reproductions.fair_memory.traces import TRACES
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from poolwise.traces.generators import generate

TB = 1024 * 1024  # MiB
WARM_UP = 3000
ORDERS: dict[str, QueuePolicy] = {"fcfs": FCFS(), "sjf": SJF(), "wfp3": WFP3(), "f1": F1(), "fair": FAIR(), "fm": FM()}
INVERTED_F1 = F1(as_printed=True)
FAIRNESS = {
    "D": "discrimination_s",
    "MD": "marginal_discrimination_s",
    "D10": "discrimination_10pct_s",
    "MD10": "marginal_discrimination_10pct_s",
}


@dataclass(frozen=True)
class PaperMachine:
    """Machine of Table I.

    Pool sizes are in TB per rack. `limited` and `sufficient` are the pools of Figure 9, `optimum` is the size that Figure 10
    finds; from `plateau` on, the curve of Figure 10 is flat.
    """

    generator: str
    racks: int
    nodes: int
    sizes: tuple[int, ...]
    limited: int
    sufficient: int
    optimum: int
    plateau: int

    def pooled(self, size_tb: int) -> Machine:
        """Return the machine with 64 GB in each node and a pool in each rack."""
        return Machine.of_racks(self.racks, self.nodes, local=64 * 1024, pool=size_tb * TB)

    def baseline(self) -> Machine:
        """Return the machine with 512 GB in each node and no pools."""
        return Machine.of_racks(self.racks, self.nodes, local=512 * 1024)


MACHINES = {
    "perlmutter": PaperMachine("perlmutter_like", 6, 256, tuple(range(4, 49, 4)), 16, 32, 28, 20),
    "juwels": PaperMachine("juwels_like", 20, 48, tuple(range(2, 25, 2)), 6, 12, 6, 6),
}


@dataclass(frozen=True)
class RunGroup:
    """All runs on one machine with one seed and pool size; the unit that a worker executes.

    `size_tb` 0 is the machine with 512 GB in every node. `trace` names one of `TRACES`; empty for the generated workload.
    """

    machine: str
    seed: int
    scope: PoolScope
    size_tb: int
    backfills: tuple[BackfillName, ...] = tuple(BACKFILLS)
    trace: str = ""

    def orders(self) -> dict[str, QueuePolicy]:
        """Return the orders to run by name: FM for the system scope, FM and FCFS without pools, all orders otherwise."""
        if self.scope == "system":
            return {"fm": ORDERS["fm"]}
        if not self.size_tb:
            return {name: ORDERS[name] for name in ("fm", "fcfs")}
        return ORDERS if self.trace else {**ORDERS, "f1_as_printed": INVERTED_F1}

    def workload(self) -> Workload:
        """Generate the jobs."""
        generator = MACHINES[self.machine].generator
        return TRACES[self.trace].workload(generator, self.seed) if self.trace else generate(generator, seed=self.seed)


def simulate_group(group: RunGroup) -> Json:
    """Simulate the runs of a group; return one row per run, and samples of the runs that figures show."""
    paper, workload = MACHINES[group.machine], group.workload()
    machine = paper.pooled(group.size_tb) if group.size_tb else paper.baseline()
    fair = _run(workload, machine, _list(FCFS(), group.scope, NoBackfill()), group.seed)
    plain = _run(workload, paper.baseline(), _list(FCFS(), "rack", NoBackfill()), group.seed)
    rows: list[dict[str, Any]] = []
    samples: dict[tuple[str, ...], FloatArray] = {}
    for backfill in group.backfills:
        for name, order in group.orders().items():
            outcomes = _run(workload, machine, _list(order, group.scope, BACKFILLS[backfill]), group.seed)
            rows.append({**_key(group, backfill, name), **_measure(outcomes, fair, plain)})
            if name == "fm" and not group.seed and not group.trace:
                samples.update(_samples(group, backfill, outcomes))
    rows.extend(_quadratic(group, workload, machine))
    ordered = [[[name, value] for name, value in row.items()] for row in rows]  # JSON objects lose the column order
    return {"rows": ordered, "samples": [[list(name), values.tolist()] for name, values in samples.items()]}


def _quadratic(group: RunGroup, workload: Workload, machine: Machine) -> Iterator[dict[str, Any]]:
    """Run the slowdown curve of the authors' own runs at the sizes that the paper singles out."""
    paper = MACHINES[group.machine]
    if group.scope == "rack" and not group.trace and group.size_tb in (paper.limited, paper.sufficient):
        for name in ("sjf", "fm"):
            model = RemoteMemory(group.seed, "quadratic")
            outcomes = _run(workload, machine, _list(ORDERS[name], "rack", Easy()), group.seed, model)
            yield {**_key(group, "easy, quadratic slowdown", name), **_measure(outcomes, None, None)}


def _list(order: QueuePolicy, scope: PoolScope, backfill: BackfillPolicy) -> WarmUp:
    return WarmUp.before(ListScheduler(order, backfill, RackPlacement(scope)), WARM_UP)


def _run(workload: Workload, machine: Machine, scheduler: WarmUp, seed: int, model: RemoteMemory | None = None) -> Outcomes:
    return Outcomes.of(simulate(machine, workload, scheduler, truth=model or RemoteMemory(seed), seed=seed).schedule)


def _key(group: RunGroup, backfill: str, order: str) -> dict[str, Any]:
    where = {"machine": group.machine, "seed": group.seed, "scope": group.scope, "trace": group.trace}
    return {**where, "backfill": backfill, "order": order, "size_tb": group.size_tb}


def _measure(outcomes: Outcomes, fair: Outcomes | None, plain: Outcomes | None) -> dict[str, float]:
    """Return the metrics of the paper's population; "all_" marks those of all jobs, "plain_" fairness against 512 GB."""
    window, after = Window.of(outcomes, WARM_UP), after_warm_up(outcomes, WARM_UP)
    paper, whole = paper_population(outcomes, WARM_UP), after & outcomes.finished

    def of(population: BoolArray, baseline: Outcomes | None) -> dict[str, float]:
        return summarize(outcomes, warm_up=WARM_UP, population=population, window=window, baseline=baseline)

    against = of(paper, plain)
    slowdown = bounded_slowdown(outcomes)[whole]
    return {
        **of(paper, fair),
        "all_mean_bounded_slowdown": float(slowdown.mean()),
        "all_p999_bounded_slowdown": float(np.quantile(slowdown, 0.999)),
        **{f"plain_{name}": against[name] for name in (*FAIRNESS.values(), "compared_jobs")},
        "share_150pct_degradation": float((degradation(outcomes)[whole] >= 1.5).mean()),
        "modal_memory_bin": 5.0 + 10.0 * float(np.argmax(_memory_bins(outcomes))),
        "rejected": float(len(outcomes) - np.count_nonzero(outcomes.finished)),
    }


def _samples(group: RunGroup, backfill: str, outcomes: Outcomes) -> dict[tuple[str, ...], FloatArray]:
    """Return the distributions of Figures 9, 11 and 12: (machine, backfill, distribution, ...) -> values of the first seed."""
    paper, where = MACHINES[group.machine], (group.machine, backfill)
    found: dict[tuple[str, ...], FloatArray] = {}
    after = after_warm_up(outcomes, WARM_UP) & outcomes.finished
    if group.size_tb in (0, paper.limited, paper.sufficient):
        found[*where, "slowdown", group.scope, str(group.size_tb)] = bounded_slowdown(outcomes)[after]
    if group.scope == "rack" and group.size_tb in (0, paper.optimum):
        found[*where, "memory", str(group.size_tb)] = _memory_bins(outcomes)
        found[*where, "degradation", str(group.size_tb)] = degradation(outcomes)[after]
    return found


def _memory_bins(outcomes: Outcomes) -> FloatArray:
    """Return (10,) shares of the time in which memory utilization lies in each 10 % bin."""
    window = Window.of(outcomes, WARM_UP)
    shares: FloatArray = utilization_histogram(memory_utilization(outcomes, window)).share
    return shares
