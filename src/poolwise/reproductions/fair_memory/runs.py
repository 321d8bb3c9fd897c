"""The runs of the Fair Memory reproduction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

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
class MachineOfPaper:
    """A machine of Table I.

    `limited` is the small pool of Figure 9, `optimum` the size that Figure 10 finds; from `plateau` on its curve is flat.
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
        """64 GB in each node and a pool in each rack."""
        return Machine.of_racks(self.racks, self.nodes, local=64 * 1024, pool=size_tb * TB)

    def baseline(self) -> Machine:
        """512 GB in each node, no pools."""
        return Machine.of_racks(self.racks, self.nodes, local=512 * 1024)


MACHINES = {
    "perlmutter": MachineOfPaper("perlmutter_like", 6, 256, tuple(range(4, 49, 4)), 16, 32, 28, 20),
    "juwels": MachineOfPaper("juwels_like", 20, 48, tuple(range(2, 25, 2)), 6, 12, 6, 6),
}


@dataclass(frozen=True)
class RunGroup:
    """All runs on one machine: the unit that a worker does.

    `size_tb` 0 is the machine with 512 GB in every node. `trace` names one of `TRACES`, or the generated workload if empty.
    """

    machine: str
    seed: int
    scope: PoolScope
    size_tb: int
    backfills: tuple[BackfillName, ...] = tuple(BACKFILLS)
    trace: str = ""

    def orders(self) -> dict[str, QueuePolicy]:
        """Order by name; the scopes are compared under FM, other traces under the orders that may lead."""
        if self.scope == "system":
            return {"fm": ORDERS["fm"]}
        if not self.size_tb:
            return {name: ORDERS[name] for name in ("fm", "fcfs")}
        return ORDERS if self.trace else {**ORDERS, "f1_as_printed": INVERTED_F1}

    def workload(self) -> Workload:
        """The jobs."""
        generator = MACHINES[self.machine].generator
        return TRACES[self.trace].workload(generator, self.seed) if self.trace else generate(generator, seed=self.seed)


@dataclass(frozen=True)
class Done:
    """The result of a batch: a row for each run, and samples of the runs that figures show."""

    rows: Sequence[Mapping[str, Any]]
    samples: Mapping[tuple[str, ...], FloatArray]

    def content(self) -> Json:
        """Plain data, as it is kept."""
        rows = [[[name, value] for name, value in row.items()] for row in self.rows]  # the order of columns is kept
        return {"rows": rows, "samples": [[list(name), values.tolist()] for name, values in self.samples.items()]}

    @classmethod
    def of(cls, content: Json) -> Done:
        """Read what `content` wrote."""
        return cls(
            [dict(row) for row in content["rows"]],
            {tuple(name): np.array(values, dtype=np.float64) for name, values in content["samples"]},
        )


@dataclass(frozen=True)
class FairMemoryResults:
    """All rows, and samples of the first seed by (machine, what, ...)."""

    frame: pl.DataFrame
    samples: Mapping[tuple[str, ...], FloatArray] = field(default_factory=dict)

    @classmethod
    def of(cls, done: Sequence[Done]) -> FairMemoryResults:
        """Put batches together."""
        samples: dict[tuple[str, ...], FloatArray] = {}
        for batch in reversed(done):
            samples.update(batch.samples)
        return cls(pl.DataFrame([row for batch in done for row in batch.rows], infer_schema_length=None), samples)

    def seeds(self, metric: str, **where: Any) -> FloatArray:
        """(n_seed,) values of a metric, one per seed, of the runs that match; of the generated jobs unless `trace` is given."""
        found = self.frame.filter(**{"trace": "", **where}).sort("seed")
        return found[metric].to_numpy()

    def mean(self, metric: str, **where: Any) -> float:
        """Mean over seeds; NaN where nothing ran."""
        values = self.seeds(metric, **where)
        return float(values.mean()) if len(values) else float("nan")

    def sizes(self, machine: str, trace: str = "") -> list[int]:
        """Pool sizes that ran, TB per rack."""
        if self.frame.is_empty():
            return []
        ran = self.frame.filter((pl.col("size_tb") > 0) & (pl.col("machine") == machine) & (pl.col("trace") == trace))
        return [int(size) for size in ran["size_tb"].unique().sort().to_list()]

    def rejected(self, machine: str) -> dict[int, float]:
        """Jobs rejected at each size, mean over seeds."""
        where = {"machine": machine, "order": "fm", "scope": "rack", "backfill": "easy"}
        return {size: self.mean("rejected", size_tb=size, **where) for size in self.sizes(machine)}


def simulate_batch(batch: RunGroup) -> Json:
    """Run a batch; returns the content of a `Done`."""
    paper, workload = MACHINES[batch.machine], batch.workload()
    machine = paper.pooled(batch.size_tb) if batch.size_tb else paper.baseline()
    fair = _run(workload, machine, _list(FCFS(), batch.scope, NoBackfill()), batch.seed)
    plain = _run(workload, paper.baseline(), _list(FCFS(), "rack", NoBackfill()), batch.seed)
    rows: list[dict[str, Any]] = []
    samples: dict[tuple[str, ...], FloatArray] = {}
    for backfill in batch.backfills:
        for name, order in batch.orders().items():
            outcomes = _run(workload, machine, _list(order, batch.scope, BACKFILLS[backfill]), batch.seed)
            rows.append({**_key(batch, backfill, name), **_measure(outcomes, fair, plain)})
            if name == "fm" and not batch.seed and not batch.trace:
                samples.update(_samples(batch, backfill, outcomes))
    rows.extend(_quadratic(batch, workload, machine))
    return Done(rows, samples).content()


def _quadratic(batch: RunGroup, workload: Workload, machine: Machine) -> Iterator[dict[str, Any]]:
    """The slowdown curve of the authors' own runs, at the sizes that the paper singles out."""
    paper = MACHINES[batch.machine]
    if batch.scope == "rack" and not batch.trace and batch.size_tb in (paper.limited, paper.sufficient):
        for name in ("sjf", "fm"):
            model = RemoteMemory(batch.seed, "quadratic")
            outcomes = _run(workload, machine, _list(ORDERS[name], "rack", Easy()), batch.seed, model)
            yield {**_key(batch, "easy, quadratic slowdown", name), **_measure(outcomes, None, None)}


def _list(order: QueuePolicy, scope: PoolScope, backfill: BackfillPolicy) -> WarmUp:
    return WarmUp.before(ListScheduler(order, backfill, RackPlacement(scope)), WARM_UP)


def _run(workload: Workload, machine: Machine, scheduler: WarmUp, seed: int, model: RemoteMemory | None = None) -> Outcomes:
    return Outcomes.of(simulate(machine, workload, scheduler, truth=model or RemoteMemory(seed), seed=seed).schedule)


def _key(batch: RunGroup, backfill: str, order: str) -> dict[str, Any]:
    return {
        "machine": batch.machine,
        "seed": batch.seed,
        "scope": batch.scope,
        "trace": batch.trace,
        "backfill": backfill,
        "order": order,
        "size_tb": batch.size_tb,
    }


def _measure(outcomes: Outcomes, fair: Outcomes | None, plain: Outcomes | None) -> dict[str, float]:
    """Metrics over the paper's population; those of all jobs under names with "all_", fairness against 512 GB with "plain_"."""
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


def _samples(batch: RunGroup, backfill: str, outcomes: Outcomes) -> dict[tuple[str, ...], FloatArray]:
    """Distributions that Figures 9, 11 and 12 show: (machine, backfill, what, ...) -> values of the first seed."""
    paper, where = MACHINES[batch.machine], (batch.machine, backfill)
    found: dict[tuple[str, ...], FloatArray] = {}
    after = after_warm_up(outcomes, WARM_UP) & outcomes.finished
    if batch.size_tb in (0, paper.limited, paper.sufficient):
        found[*where, "slowdown", batch.scope, str(batch.size_tb)] = bounded_slowdown(outcomes)[after]
    if batch.scope == "rack" and batch.size_tb in (0, paper.optimum):
        found[*where, "memory", str(batch.size_tb)] = _memory_bins(outcomes)
        found[*where, "degradation", str(batch.size_tb)] = degradation(outcomes)[after]
    return found


def _memory_bins(outcomes: Outcomes) -> FloatArray:
    """(10,) share of the time in which memory utilisation lies in each 10 % bin."""
    window = Window.of(outcomes, WARM_UP)
    shares: FloatArray = utilization_histogram(memory_utilization(outcomes, window)).share
    return shares
