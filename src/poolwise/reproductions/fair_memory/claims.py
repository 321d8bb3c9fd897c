"""What the claims of the Fair Memory paper ask for, measured from our runs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.compare.published import Key, Measured
from poolwise.metrics.intervals import mean_interval
from poolwise.model import Machine
from poolwise.performance.remote_memory import FAR, NEAR, sld_factor
from poolwise.reproductions.fair_memory.runs import MACHINES, ORDERS, TB, FairMemoryResults

DOLLARS_PER_GB = 4.9
FAIRNESS = {
    "D": "discrimination_s",
    "MD": "marginal_discrimination_s",
    "D10": "discrimination_10pct_s",
    "MD10": "marginal_discrimination_10pct_s",
}


def measure(results: FairMemoryResults) -> dict[Key, Measured]:
    """Measure every claim that the runs can answer."""
    found: dict[Key, Measured] = {}
    found |= _kernels()
    for machine in MACHINES:
        found |= _figure_7(results, machine)
        found |= _figure_8(results, machine)
        found |= _figure_9(results, machine)
        found |= _figure_10(results, machine)
        found |= _figures_11_12(results, machine)
        found |= _parity(results, machine)
    return found


def over_seeds(values: FloatArray) -> Measured:
    """Mean over seeds with its 95 % interval."""
    interval = mean_interval(values)
    return Measured(interval.mean, interval.low, interval.high)


class _Cells:
    """Values over seeds of one machine in rack scope."""

    def __init__(self, results: FairMemoryResults, machine: str) -> None:
        self.results, self.machine = results, machine
        self.sizes = results.sizes(machine)

    def __call__(self, metric: str, order: str, size: int, variant: str = "ours", scope: str = "rack") -> FloatArray:
        return self.results.seeds(metric, machine=self.machine, order=order, size_tb=size, variant=variant, scope=scope)

    def others(self, metric: str, order: str, size: int, best: Callable[..., FloatArray]) -> FloatArray:
        """Best (np.min) or worst (np.max) of all other orders, seed by seed."""
        return best([self(metric, other, size) for other in ORDERS if other != order], axis=0)


def _kernels() -> dict[Key, Measured]:
    found: dict[Key, Measured] = {}
    for ns, kernels in (("180 ns", NEAR), ("280 ns", FAR)):
        for what, value in (("mean", float(np.mean(kernels))), ("least", min(kernels)), ("greatest", max(kernels))):
            found["Figure 5", ns, f"{what} slowdown of the 11 kernels"] = Measured(value)
    found["Section III-A", "190 ns", "slowdown of Canneal"] = Measured(100 * sld_factor(10.5 / 11, 190))
    found["Section III-A", "190 ns", "slowdown of Streamcluster"] = Measured(100 * sld_factor(9.5 / 11, 190))
    return found


def _figure_7(results: FairMemoryResults, machine: str) -> dict[Key, Measured]:
    cells, found = _Cells(results, machine), {}
    first, last = cells.sizes[0], cells.sizes[-1]
    slowdown, throughput = "mean_bounded_slowdown", "throughput_per_100s"
    for order in ORDERS:
        where = ("Figure 7", f"{machine}, {order}")
        fall = cells(slowdown, order, first) / cells(slowdown, order, last) - 1
        found[*where, "fall of mean bounded slowdown from the smallest to the largest pool"] = over_seeds(fall)
        for metric, name in ((throughput, "throughput"), ("utilization", "utilisation")):
            rise = cells(metric, order, last) / cells(metric, order, first) - 1
            found[*where, f"rise of {name} from the smallest to the largest pool"] = over_seeds(rise)
    for size in cells.sizes:
        if machine == "perlmutter" or size < MACHINES[machine].limited:
            for which, metric in ((f"{machine}, {size} TB", slowdown), (f"{machine}, {size} TB, all jobs", f"all_{slowdown}")):
                lead = cells.others(metric, "fm", size, np.min) / cells(metric, "fm", size) - 1
                found["Figure 7", which, "lead of FM in mean bounded slowdown over the best other order"] = over_seeds(lead)
    last_place = cells.others(throughput, "fcfs", last, np.min) / cells(throughput, "fcfs", last) - 1
    found["Figure 7", machine, "how far FCFS is the last in throughput at the largest pool"] = over_seeds(last_place)
    return found | (_figure_7_perlmutter(cells) if machine == "perlmutter" else _figure_7_juwels(cells))


def _figure_7_perlmutter(cells: _Cells) -> dict[Key, Measured]:
    slowdown, throughput, last = "mean_bounded_slowdown", "throughput_per_100s", cells.sizes[-1]
    where = ("Figure 7", "perlmutter")
    lead = [100 * (1 - cells(slowdown, "fm", s) / cells(slowdown, "sjf", s)) for s in cells.sizes]
    fair = np.max([cells(throughput, "fair", s) for s in cells.sizes], axis=0)
    first_place = cells(throughput, "fair", last) / cells.others(throughput, "fair", last, np.max) - 1
    found = {
        (*where, "greatest lead of FM over SJF in mean bounded slowdown"): over_seeds(np.max(lead, axis=0)),
        (*where, "throughput of FAIR at its best"): over_seeds(fair),
        (*where, "throughput of FCFS at the largest pool"): over_seeds(cells(throughput, "fcfs", last)),
        (*where, "lead of FAIR in throughput at the largest pool"): over_seeds(first_place),
    }
    if 44 in cells.sizes:
        for order in ("fair", "sjf"):
            value = over_seeds(100 * cells("utilization", order, 44))
            found["Figure 7", "perlmutter, 44 TB", f"utilisation of {order.upper()}"] = value
    return found


def _figure_7_juwels(cells: _Cells) -> dict[Key, Measured]:
    found: dict[Key, Measured] = {}
    for order in ("fcfs", "f1"):
        value = over_seeds(100 * cells("utilization", order, cells.sizes[-1]))
        found["Figure 7", f"juwels, {cells.sizes[-1]} TB", f"utilisation of {order.upper()}"] = value
    ahead = [s for s in cells.sizes if _mean(cells, "sjf", s) < _mean(cells, "fm", s)]
    name = "least pool from which SJF beats FM in mean bounded slowdown"
    found["Figure 7", "juwels", name] = Measured(float(ahead[0]) if ahead else math.nan)
    return found


def _mean(cells: _Cells, order: str, size: int) -> float:
    return float(cells("mean_bounded_slowdown", order, size).mean())


def _best(cells: _Cells, size: int) -> str:
    """Order with the lowest mean bounded slowdown."""
    return min(ORDERS, key=lambda order: _mean(cells, order, size))


def _figure_8(results: FairMemoryResults, machine: str) -> dict[Key, Measured]:
    """Margins in hours per job, so that they can be read beside a wait."""
    cells, paper, found = _Cells(results, machine), MACHINES[machine], {}
    for size in (paper.limited, paper.sufficient):
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
    """The order that the paper calls least fair."""
    if machine == "juwels":
        return "f1"
    if metric in ("D", "MD"):
        return "fcfs"
    return "f1" if size == MACHINES[machine].sufficient else None


def _figure_9(results: FairMemoryResults, machine: str) -> dict[Key, Measured]:
    limited = MACHINES[machine].limited
    tails = [results.samples.get((machine, "slowdown", scope, str(limited))) for scope in ("rack", "system")]
    if tails[0] is None or tails[1] is None:
        return {}
    rack, system = (float(np.quantile(tail, 0.999)) for tail in tails if tail is not None)
    name = "99.9th percentile of bounded slowdown: system over rack"
    return {("Figure 9", f"{machine}, {limited} TB", name): Measured(system / rack - 1, note="first seed")}


def _figure_10(results: FairMemoryResults, machine: str) -> dict[Key, Measured]:
    cells, paper = _Cells(results, machine), MACHINES[machine]
    metric = "throughput_per_100s_per_memory_dollar"
    gains = np.array([cells(metric, "fm", s) for s in cells.sizes])
    base = results.seeds(metric, machine=machine, variant="baseline", order="fm")
    best = np.array(cells.sizes)[gains.argmax(axis=0)].astype(np.float64)
    installed, pooled = (_terabytes(m) for m in (paper.baseline(), paper.pooled(paper.optimum)))
    where = ("Section IV-C", machine)
    return {
        ("Figure 10", machine, "pool per rack with the best throughput per memory dollar"): over_seeds(best),
        ("Figure 10", machine, "best throughput per memory dollar over the 512 GB baseline"): over_seeds(
            gains.max(axis=0) / base
        ),
        (*where, "total memory of the baseline"): Measured(installed),
        (*where, "total memory at the published optimum"): Measured(pooled),
        (*where, "memory saved at the published optimum"): Measured(100 * (1 - pooled / installed)),
        (*where, "memory cost saved at the published optimum"): Measured((installed - pooled) * 1024 * DOLLARS_PER_GB / 1e6),
    }


def _terabytes(machine: Machine) -> float:
    """Memory in all nodes and pools."""
    layout = machine.racks
    nodes = int(machine.capacity[layout.nodes, layout.node_column].sum())
    pools = sum(int(machine.capacity[p, layout.memory_column]) for p in layout.pools.tolist() if p >= 0)
    return (nodes * machine.local_memory + pools) / TB


def _figures_11_12(results: FairMemoryResults, machine: str) -> dict[Key, Measured]:
    cells, size = _Cells(results, machine), MACHINES[machine].optimum
    at = f"{machine}, {size} TB"
    base = results.seeds("mean_memory_utilization", machine=machine, variant="baseline", order="fm")
    under = 100 * cells("share_under_5pct_degradation", "fm", size)
    extreme = 0.01 - 100 * cells("share_150pct_degradation", "fm", size)
    return {
        ("Figure 11", f"{machine}, baseline", "mean memory utilisation"): over_seeds(100 * base),
        ("Figure 11", at, "mean memory utilisation"): over_seeds(100 * cells("mean_memory_utilization", "fm", size)),
        ("Figure 12", at, "jobs degraded by less than 5 %"): over_seeds(under),
        ("Figure 12", at, "mean degradation"): over_seeds(100 * cells("mean_degradation", "fm", size)),
        ("Figure 12", at, "how far jobs degraded by 150 % or more stay below 0.01 %"): over_seeds(extreme),
    }


def _parity(results: FairMemoryResults, machine: str) -> dict[Key, Measured]:
    """How much each of the authors' own deviations moves the mean bounded slowdown."""
    cells, paper, found = _Cells(results, machine), MACHINES[machine], {}
    metric = "mean_bounded_slowdown"
    for size in (paper.limited, paper.sufficient):
        at = f"{machine}, {size} TB"
        inverted = cells(metric, "f1", size, "inverted_f1") / cells(metric, "f1", size)
        name = "F1 as printed over F1 as its authors defined it: mean bounded slowdown"
        found["Parity", at, name] = over_seeds(inverted)
        for order in ("sjf", "fm"):
            ratio = cells(metric, order, size, "quadratic_cdf") / cells(metric, order, size)
            found["Parity", f"{at}, {order}", "quadratic over empirical slowdown curve: mean bounded slowdown"] = over_seeds(
                ratio
            )
    at = f"{machine}, {paper.limited} TB"
    for variant, words in (("nodes_only", "backfill that looks at nodes only"), ("nodes_only_reference", "EASY, same jobs")):
        fm, sjf = (cells(metric, order, paper.limited, variant) for order in ("fm", "sjf"))
        if len(fm):
            found["Parity", at, f"lead of FM over SJF in mean bounded slowdown: {words}"] = over_seeds(sjf / fm - 1)
    return found


def explain(results: FairMemoryResults) -> list[str]:
    """What the runs teach beyond the claims."""
    said = []
    for machine in MACHINES:
        cells = _Cells(results, machine)
        best = {size: _best(cells, size) for size in cells.sizes}
        words = ", ".join(f"{size} TB {order.upper()}" for size, order in best.items())
        said.append(f"{machine}: the order with the lowest mean bounded slowdown at each pool size is: {words}.")
    return said
