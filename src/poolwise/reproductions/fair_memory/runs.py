"""The runs of the Fair Memory reproduction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from poolwise.arrays import FloatArray
from poolwise.engines import simulate
from poolwise.identity import Json
from poolwise.metrics import Outcomes, Window, paper_population, summarise
from poolwise.metrics.memory import degradation, memory_utilization, utilization_histogram
from poolwise.metrics.slowdown import bounded_slowdown
from poolwise.metrics.window import after_warm_up
from poolwise.model import Machine, Workload
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.easy_nodes_only import EasyNodesOnly
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import F1, FAIR, FCFS, FM, SJF, WFP3
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from poolwise.traces.generators import generate

TB = 1024 * 1024  # MiB
WARM_UP = 3000
NODES_ONLY_JOBS = 6000
ORDERS = {"fcfs": FCFS(), "sjf": SJF(), "wfp3": WFP3(), "f1": F1(), "fair": FAIR(), "fm": FM()}
INVERTED_F1 = F1(as_printed=True)


@dataclass(frozen=True)
class MachineOfPaper:
    """A machine of Table I. `optimum` is the pool size that the paper's Figure 10 finds, `limited` Figure 9's small one."""

    generator: str
    racks: int
    nodes: int
    sizes: tuple[int, ...]
    limited: int
    sufficient: int
    optimum: int

    def pooled(self, size_tb: int) -> Machine:
        """64 GB in each node and a pool in each rack."""
        return Machine.of_racks(self.racks, self.nodes, local=64 * 1024, pool=size_tb * TB)

    def baseline(self) -> Machine:
        """512 GB in each node, no pools."""
        return Machine.of_racks(self.racks, self.nodes, local=512 * 1024)


MACHINES = {
    "perlmutter": MachineOfPaper("perlmutter_like", 6, 256, tuple(range(4, 49, 4)), 16, 32, 28),
    "juwels": MachineOfPaper("juwels_like", 20, 48, tuple(range(2, 25, 2)), 6, 12, 6),
}


@dataclass(frozen=True)
class RunGroup:
    """All runs of one machine, seed and scope: the unit that a worker does."""

    machine: str
    seed: int
    scope: str
    quick: bool

    def sizes(self) -> tuple[int, ...]:
        """Pool sizes in TB per rack; a quick run takes every third and those that the paper singles out."""
        paper = MACHINES[self.machine]
        if not self.quick:
            return paper.sizes
        return tuple(sorted({*paper.sizes[::3], paper.sizes[-1], paper.limited, paper.sufficient, paper.optimum}))


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
        """(n_seed,) values of a metric, one per seed, of the runs that match."""
        found = self.frame.filter(**where).sort("seed")
        return found[metric].to_numpy()

    def mean(self, metric: str, **where: Any) -> float:
        """Mean over seeds; NaN where nothing ran."""
        values = self.seeds(metric, **where)
        return float(values.mean()) if len(values) else float("nan")

    def sizes(self, machine: str) -> list[int]:
        """Pool sizes that ran, TB per rack."""
        found = self.frame.filter(machine=machine, variant="ours", scope="rack")["size_tb"].unique().sort().to_list()
        return [int(size) for size in found]

    def rejected(self, machine: str) -> dict[int, float]:
        """Jobs rejected at each size, mean over seeds."""
        where = {"machine": machine, "order": "fm", "scope": "rack", "variant": "ours"}
        return {size: self.mean("rejected", size_tb=size, **where) for size in self.sizes(machine)}


def simulate_batch(batch: RunGroup) -> Json:
    """Run a batch; returns the content of a `Done`."""
    paper = MACHINES[batch.machine]
    workload = generate(paper.generator, seed=batch.seed)
    rows: list[dict[str, Any]] = []
    samples: dict[tuple[str, ...], FloatArray] = {}
    for size in batch.sizes():
        fair = _run(workload, paper.pooled(size), WarmUp.before(_list(FCFS(), batch.scope, NoBackfill()), WARM_UP), batch.seed)
        for variant, order, outcomes in _runs(batch, size, workload):
            rows.append({**_key(batch, variant, order, size), **_measure(outcomes, fair)})
            if order == "fm" and variant == "ours":
                samples.update(_samples(batch, size, outcomes))
    if batch.scope == "rack":
        for order in ("fm", "fcfs"):
            outcomes = _run(workload, paper.baseline(), WarmUp.before(_list(ORDERS[order], "rack"), WARM_UP), batch.seed)
            rows.append({**_key(batch, "baseline", order, 0), **_measure(outcomes, None)})
            if order == "fm" and batch.seed == 0:
                after = after_warm_up(outcomes, WARM_UP) & outcomes.finished
                samples[batch.machine, "slowdown", "512 GB per node"] = bounded_slowdown(outcomes)[after]
                samples[batch.machine, "memory", "512 GB per node"] = _memory_bins(outcomes)
        if batch.seed == 0 and not batch.quick:
            rows.extend(_nodes_only(batch))
    return Done(rows, samples).content()


def _runs(batch: RunGroup, size: int, workload: Workload) -> Iterator[tuple[str, str, Outcomes]]:
    """The six orders; at the sizes that the paper singles out also what its authors' own runs did differently."""
    paper = MACHINES[batch.machine]
    machine = paper.pooled(size)
    for name, order in ORDERS.items():
        yield "ours", name, _run(workload, machine, WarmUp.before(_list(order, batch.scope), WARM_UP), batch.seed)
    if batch.scope == "rack" and size in (paper.limited, paper.sufficient):
        inverted = WarmUp.before(_list(INVERTED_F1, "rack"), WARM_UP)
        yield "inverted_f1", "f1", _run(workload, machine, inverted, batch.seed)
        for name in ("sjf", "fm"):
            scheduler = WarmUp.before(_list(ORDERS[name], "rack"), WARM_UP)
            yield "quadratic_cdf", name, _run(workload, machine, scheduler, batch.seed, RemoteMemory(batch.seed, "quadratic"))


def _nodes_only(batch: RunGroup) -> Iterator[dict[str, Any]]:
    """FM and SJF with reservations that look at nodes only, and with EASY, on the first jobs."""
    paper = MACHINES[batch.machine]
    machine, workload = paper.pooled(paper.limited), generate(paper.generator, seed=batch.seed, jobs=NODES_ONLY_JOBS)
    for variant, backfill in (("nodes_only", EasyNodesOnly()), ("nodes_only_reference", Easy())):
        for order in ("sjf", "fm"):
            scheduler = WarmUp.before(_list(ORDERS[order], "rack", backfill), WARM_UP)
            outcomes = _run(workload, machine, scheduler, batch.seed)
            yield {**_key(batch, variant, order, paper.limited), **_measure(outcomes, None)}


def _list(order: Any, scope: Any, backfill: Any = None) -> ListScheduler:
    return ListScheduler(order, backfill if backfill is not None else Easy(), RackPlacement(scope))


def _run(workload: Workload, machine: Machine, scheduler: WarmUp, seed: int, model: RemoteMemory | None = None) -> Outcomes:
    return Outcomes.of(simulate(machine, workload, scheduler, truth=model or RemoteMemory(seed), seed=seed).schedule)


def _key(batch: RunGroup, variant: str, order: str, size: int) -> dict[str, Any]:
    return {
        "machine": batch.machine,
        "seed": batch.seed,
        "scope": batch.scope,
        "variant": variant,
        "order": order,
        "size_tb": size,
    }


def _measure(outcomes: Outcomes, fair: Outcomes | None) -> dict[str, float]:
    """Metrics over the paper's population, and those of all jobs under names that begin with "all_"."""
    window = Window.of(outcomes, WARM_UP)
    after = after_warm_up(outcomes, WARM_UP)
    paper = summarise(outcomes, warm_up=WARM_UP, population=paper_population(outcomes, WARM_UP), window=window, baseline=fair)
    whole = summarise(outcomes, warm_up=WARM_UP, population=after & outcomes.finished, window=window, baseline=fair)
    extreme = degradation(outcomes)[after & outcomes.finished]
    return {
        **paper,
        **{f"all_{name}": value for name, value in whole.items()},
        "share_150pct_degradation": float((extreme >= 1.5).mean()),
        "rejected": float(len(outcomes) - np.count_nonzero(outcomes.finished)),
    }


def _samples(batch: RunGroup, size: int, outcomes: Outcomes) -> dict[tuple[str, ...], FloatArray]:
    """Distributions that Figures 9, 11 and 12 show, of the first seed."""
    paper = MACHINES[batch.machine]
    found: dict[tuple[str, ...], FloatArray] = {}
    after = after_warm_up(outcomes, WARM_UP) & outcomes.finished
    if batch.seed == 0 and size in (paper.limited, paper.sufficient):
        found[batch.machine, "slowdown", batch.scope, str(size)] = bounded_slowdown(outcomes)[after]
    if batch.seed == 0 and batch.scope == "rack" and size == paper.optimum:
        found[batch.machine, "degradation"] = degradation(outcomes)[after]
        found[batch.machine, "memory", f"64 GB per node and {size} TB per rack"] = _memory_bins(outcomes)
    return found


def _memory_bins(outcomes: Outcomes) -> FloatArray:
    """(10,) share of the time in which memory utilisation lies in each 10 % bin."""
    window = Window.of(outcomes, WARM_UP)
    shares: FloatArray = utilization_histogram(memory_utilization(outcomes, window)).share
    return shares
