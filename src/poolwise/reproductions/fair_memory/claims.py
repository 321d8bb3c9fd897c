"""Measured values of the claims of the Fair Memory paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.metrics.intervals import mean_interval
from poolwise.model import Machine
from poolwise.performance.remote_memory import FAR, NEAR, sld_factor
from poolwise.reproductions.fair_memory.readings import AS_RUN, SPEC, FairMemoryReading
from poolwise.reproductions.fair_memory.runs import FAIRNESS, MACHINES, ORDERS, TB, FairMemoryResults, PaperMachine

DOLLARS_PER_GB = 4.9
SLOWDOWN, THROUGHPUT = "mean_bounded_slowdown", "throughput_per_100s"


def measure_claims(results: FairMemoryResults, reading: FairMemoryReading = SPEC) -> dict[Key, Measured]:
    """Return the measured value of every claim that the runs cover under a reading."""
    found: dict[Key, Measured] = _kernels()
    for machine in MACHINES:
        cells = FairMemoryCells(results, machine, reading)
        if cells.sizes:
            for part in (_figure_7, _figure_8, _figure_9, _figure_10, _figures_11_12):
                found |= part(cells)
    return {key: value for key, value in found.items() if not math.isnan(value.value)}


def over_seeds(values: FloatArray) -> Measured:
    """Return the mean over seeds with its 95 % interval."""
    interval = mean_interval(values)
    return Measured(interval.mean, interval.low, interval.high)


@dataclass(frozen=True)
class FairMemoryCells:
    """Results of one machine under a reading: (n_seed,) values per metric, order and pool size; NaN where nothing ran."""

    results: FairMemoryResults
    machine: str
    reading: FairMemoryReading = SPEC
    trace: str = ""

    @property
    def paper(self) -> PaperMachine:
        """Machine as the paper describes it."""
        return MACHINES[self.machine]

    @property
    def sizes(self) -> list[int]:
        """Pool sizes that were run, TB per rack."""
        return self.results.sizes(self.machine, self.trace)

    def __call__(self, metric: str, order: str, size: int, scope: str = "rack") -> FloatArray:
        """Return (n_seed,) values of a metric under an order; fairness is measured against the reading's baseline."""
        order = self.reading.f1 if order == "f1" else order
        if self.reading.baseline == "512 GB" and metric in (*FAIRNESS.values(), "compared_jobs"):
            metric = f"plain_{metric}"
        where = {"machine": self.machine, "backfill": self.reading.backfill, "trace": self.trace}
        found = self.results.seeds(metric, order=order, size_tb=size, scope=scope, **where)
        return found if len(found) else np.full(1, np.nan)

    def others(self, metric: str, order: str, size: int, best: Callable[..., FloatArray]) -> FloatArray:
        """Return the best (np.min) or worst (np.max) value of all other orders, seed by seed."""
        return best([self(metric, other, size) for other in ORDERS if other != order], axis=0)

    def lead(self, size: int, metric: str = SLOWDOWN) -> FloatArray:
        """Return by how much the mean bounded slowdown of the best other order exceeds that of FM, as a ratio less 1."""
        found: FloatArray = self.others(metric, "fm", size, np.min) / self(metric, "fm", size) - 1
        return found


def _kernels() -> dict[Key, Measured]:
    found: dict[Key, Measured] = {}
    for ns, kernels in (("180 ns", NEAR), ("280 ns", FAR)):
        for what, value in (("mean", float(np.mean(kernels))), ("least", min(kernels)), ("greatest", max(kernels))):
            found["Figure 5", ns, f"{what} slowdown of the 11 kernels"] = Measured(value)
    found["Section III-A", "190 ns", "slowdown of Canneal"] = Measured(100 * sld_factor(10.5 / 11, 190))
    found["Section III-A", "190 ns", "slowdown of Streamcluster"] = Measured(100 * sld_factor(9.5 / 11, 190))
    return found


def _figure_7(cells: FairMemoryCells) -> dict[Key, Measured]:
    machine, found = cells.machine, {}
    first, last = cells.sizes[0], cells.sizes[-1]
    for order in ORDERS:
        where = ("Figure 7", f"{machine}, {order}")
        fall = cells(SLOWDOWN, order, first) / cells(SLOWDOWN, order, last) - 1
        found[*where, "fall of mean bounded slowdown from the smallest to the largest pool"] = over_seeds(fall)
        for metric, name in ((THROUGHPUT, "throughput"), ("utilization", "utilisation")):
            rise = cells(metric, order, last) / cells(metric, order, first) - 1
            found[*where, f"rise of {name} from the smallest to the largest pool"] = over_seeds(rise)
    for size in cells.sizes:
        if machine == "perlmutter" or size < cells.paper.limited:
            for which, metric in ((f"{machine}, {size} TB", SLOWDOWN), (f"{machine}, {size} TB, all jobs", f"all_{SLOWDOWN}")):
                name = "lead of FM in mean bounded slowdown over the best other order"
                found["Figure 7", which, name] = over_seeds(cells.lead(size, metric))
    last_place = cells.others(THROUGHPUT, "fcfs", last, np.min) / cells(THROUGHPUT, "fcfs", last) - 1
    found["Figure 7", machine, "how far FCFS is the last in throughput at the largest pool"] = over_seeds(last_place)
    for metric, name in ((THROUGHPUT, "throughput"), ("utilization", "utilisation")):
        fm, least, most = cells(metric, "fm", last), *(cells.others(metric, "fm", last, f) for f in (np.min, np.max))
        inside = np.minimum(fm / least, most / fm) - 1
        key = ("Figure 7", machine, f"how far FM is from the first and the last in {name} at the largest pool")
        found[key] = over_seeds(inside)
    return found | (_figure_7_perlmutter(cells) if machine == "perlmutter" else _figure_7_juwels(cells))


def _figure_7_perlmutter(cells: FairMemoryCells) -> dict[Key, Measured]:
    last, where = cells.sizes[-1], ("Figure 7", "perlmutter")
    lead = [100 * (1 - cells(SLOWDOWN, "fm", s) / cells(SLOWDOWN, "sjf", s)) for s in cells.sizes]
    fair = np.max([cells(THROUGHPUT, "fair", s) for s in cells.sizes], axis=0)
    first_place = cells(THROUGHPUT, "fair", last) / cells.others(THROUGHPUT, "fair", last, np.max) - 1
    found = {
        (*where, "greatest lead of FM over SJF in mean bounded slowdown"): over_seeds(np.max(lead, axis=0)),
        (*where, "throughput of FAIR at its best"): over_seeds(fair),
        (*where, "throughput of FCFS at the largest pool"): over_seeds(cells(THROUGHPUT, "fcfs", last)),
        (*where, "lead of FAIR in throughput at the largest pool"): over_seeds(first_place),
    }
    if 44 in cells.sizes:
        found |= _utilizations(cells, 44, "fair", "sjf")
    return found


def _figure_7_juwels(cells: FairMemoryCells) -> dict[Key, Measured]:
    least = _first_size(cells)
    name = "least pool from which SJF beats FM in mean bounded slowdown"
    return _utilizations(cells, cells.sizes[-1], "fcfs", "f1") | {("Figure 7", "juwels", name): over_seeds(least)}


def _utilizations(cells: FairMemoryCells, size: int, first: str, last: str) -> dict[Key, Measured]:
    """Measure the utilization of the orders that the paper ranks first and last, and their margins in percentage points."""
    where, metric = ("Figure 7", f"{cells.machine}, {size} TB"), "utilization"
    found = {
        (*where, f"utilisation of {order.upper()}"): over_seeds(100 * cells(metric, order, size)) for order in (first, last)
    }
    ahead = 100 * (cells(metric, first, size) - cells.others(metric, first, size, np.max))
    behind = 100 * (cells.others(metric, last, size, np.min) - cells(metric, last, size))
    found[*where, f"lead of {first.upper()} in utilisation"] = over_seeds(ahead)
    found[*where, f"how far {last.upper()} is the last in utilisation"] = over_seeds(behind)
    return found


def _first_size(cells: FairMemoryCells) -> FloatArray:
    """Return (n_seed,) smallest pools at which SJF has the lower mean bounded slowdown; NaN for seeds without one."""
    ahead = np.array([cells(SLOWDOWN, "sjf", s) < cells(SLOWDOWN, "fm", s) for s in cells.sizes])
    sizes = np.array(cells.sizes, dtype=np.float64)
    return np.where(ahead.any(axis=0), sizes[ahead.argmax(axis=0)], np.nan)


def _figure_8(cells: FairMemoryCells) -> dict[Key, Measured]:
    """Measure the fairness margins in hours per job, so that they are comparable with waits."""
    machine, found = cells.machine, {}
    for size in (cells.paper.limited, cells.paper.sufficient):
        jobs = cells("compared_jobs", "fm", size) * 3600
        for short, metric in FAIRNESS.items():
            where = ("Figure 8", f"{machine}, {size} TB")
            lead = (cells.others(metric, "fm", size, np.min) - cells(metric, "fm", size)) / jobs
            found[*where, f"lead of FM in {short}"] = over_seeds(lead)
            worst = _most_discriminating(machine, size, short)
            if worst is not None:
                behind = (cells(metric, worst, size) - cells.others(metric, worst, size, np.max)) / jobs
                found[*where, f"how far {worst.upper()} is the last in {short}"] = over_seeds(behind)
    return found


def _most_discriminating(machine: str, size: int, metric: str) -> str | None:
    """Return the order that the paper calls least fair, or None if it names none."""
    if machine == "juwels":
        return "f1"
    if metric in ("D", "MD"):
        return "fcfs"
    return "f1" if size == MACHINES[machine].sufficient else None


def _figure_9(cells: FairMemoryCells) -> dict[Key, Measured]:
    def over(metric: str, size: int) -> FloatArray:
        found: FloatArray = cells(metric, "fm", size, scope="system") / cells(metric, "fm", size)
        return found

    machine, limited, sufficient = cells.machine, cells.paper.limited, cells.paper.sufficient
    tail = "99.9th percentile of bounded slowdown: system over rack"
    mean = "mean bounded slowdown: system over rack"
    return {
        ("Figure 9", f"{machine}, {limited} TB", tail): over_seeds(over("all_p999_bounded_slowdown", limited) - 1),
        ("Figure 9", f"{machine}, {sufficient} TB", mean): over_seeds(over(f"all_{SLOWDOWN}", sufficient)),
    }


def _figure_10(cells: FairMemoryCells) -> dict[Key, Measured]:
    paper, machine = cells.paper, cells.machine
    metric = "throughput_per_100s_per_memory_dollar"
    gain = {s: cells(metric, "fm", s) / cells(metric, "fm", 0) for s in cells.sizes}
    all_gains = np.array(list(gain.values()))
    best = np.array(cells.sizes)[all_gains.argmax(axis=0)].astype(np.float64)
    where, here = ("Section IV-C", machine), ("Figure 10", machine)
    installed, pooled = (_terabytes(m) for m in (paper.baseline(), paper.pooled(paper.optimum)))
    found = {
        (*here, "pool per rack with the best throughput per memory dollar"): over_seeds(best),
        (*here, "best throughput per memory dollar over the 512 GB baseline"): over_seeds(all_gains.max(axis=0)),
        (*where, "total memory of the baseline"): Measured(installed),
        (*where, "total memory at the published optimum"): Measured(pooled),
        (*where, "memory saved at the published optimum"): Measured(100 * (1 - pooled / installed)),
        (*where, "memory cost saved at the published optimum"): Measured((installed - pooled) * 1024 * DOLLARS_PER_GB / 1e6),
    }
    steps = (("rise", paper.sizes[0], paper.plateau), ("decline", paper.sizes[-1], paper.optimum))
    for word, outer, inner in steps:
        if outer in gain and inner in gain:
            name = f"{word} of throughput per memory dollar, {inner} TB over {outer} TB"
            found[*here, name] = over_seeds(gain[inner] / gain[outer] - 1)
    if paper.plateau != paper.optimum and paper.plateau in gain:
        name = f"throughput per memory dollar, {paper.plateau} TB over {paper.optimum} TB"
        found[*here, name] = over_seeds(gain[paper.plateau] / gain[paper.optimum])
    return found


def _terabytes(machine: Machine) -> float:
    """Return the memory of all nodes and pools, TB."""
    layout = machine.racks
    nodes = int(machine.capacity[layout.nodes, layout.node_column].sum())
    pools = sum(int(machine.capacity[p, layout.memory_column]) for p in layout.pools.tolist() if p >= 0)
    return (nodes * machine.local_memory + pools) / TB


def _figures_11_12(cells: FairMemoryCells) -> dict[Key, Measured]:
    machine, size = cells.machine, cells.paper.optimum
    at, memory, mode = f"{machine}, {size} TB", "mean_memory_utilization", "modal_memory_bin"
    extreme = 0.01 - 100 * cells("share_150pct_degradation", "fm", size)
    found = {
        ("Figure 12", at, "jobs degraded by less than 5 %"): over_seeds(
            100 * cells("share_under_5pct_degradation", "fm", size)
        ),
        ("Figure 12", at, "mean degradation"): over_seeds(100 * cells("mean_degradation", "fm", size)),
        ("Figure 12", at, "how far jobs degraded by 150 % or more stay below 0.01 %"): over_seeds(extreme),
    }
    for where, pool in ((f"{machine}, baseline", 0), (at, size)):
        found["Figure 11", where, "mean memory utilisation"] = over_seeds(100 * cells(memory, "fm", pool))
        found["Figure 11", where, "middle of the most frequent 10 % bin"] = over_seeds(cells(mode, "fm", pool))
    return found


def explain(results: FairMemoryResults) -> list[str]:
    """Describe which order has the lowest mean bounded slowdown at each pool size, in both readings."""
    paragraphs = []
    for machine in MACHINES:
        for name, reading in (("spec", SPEC), ("as run", AS_RUN)):
            cells = FairMemoryCells(results, machine, reading)
            best = {size: min(ORDERS, key=lambda order: float(cells(SLOWDOWN, order, size).mean())) for size in cells.sizes}
            words = ", ".join(f"{size} TB {order.upper()}" for size, order in best.items())
            paragraphs.append(f"{machine}, {name}: the order with the lowest mean bounded slowdown at each pool size: {words}.")
    return paragraphs
