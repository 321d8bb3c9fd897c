"""Measured values of the claims of the Fair Memory paper, one function per figure or section."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations, product

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.model import Machine
from poolwise.model.rules import PoolScope
from poolwise.performance.remote_memory import FAR, FAR_NS, NEAR, NEAR_NS, sld_factor
from poolwise.quantities import SECOND
from poolwise.traces.generators import generate
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.fair_memory.readings import ALL_SWITCHES, COMBINED, SPEC
from poolwise_reproductions.fair_memory.results import SLOWDOWN, THROUGHPUT, FairMemoryResults, over_seeds
from poolwise_reproductions.fair_memory.runs import CDF, FAIRNESS, MACHINES, ORDERS, cell_of
from poolwise_reproductions.fair_memory.traces import HOUR
from poolwise_reproductions.results import KeyedRow

DOLLARS_PER_GB = 4.9
TB = 1024 * 1024  # MiB
PER_DOLLAR = "throughput_per_100s_per_memory_dollar"
INDISTINCT = 0.05
"""Largest relative difference between the orders' throughputs that we call "not obvious"; the paper prints no number."""
SCOPES: tuple[PoolScope, ...] = ("rack", "system")


def kernels(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure Figure 5 and Section III-A, which are inputs: the slowdown of single programs, independent of the machine."""
    for ns, slowdowns in (("180 ns", NEAR), ("280 ns", FAR)):
        for what, value in (("mean", float(np.mean(slowdowns))), ("minimum", min(slowdowns)), ("maximum", max(slowdowns))):
            yield ("Figure 5", ns, f"{what} slowdown of the 11 kernels"), Measured(value)
    for name, rank in (("Canneal", 10), ("Streamcluster", 9)):
        metric = f"slowdown of {name}"
        yield ("Section III-A", "190 ns", metric), Measured(100 * sld_factor((rank + 0.5) / 11, 190))
        yield ("Section III-A", "190 ns, parabola", metric), Measured(_parabola(NEAR[rank], FAR[rank], 190))
        printed = {NEAR_NS: NEAR[rank], 190: PRINTED_AT_190_NS[name], FAR_NS: FAR[rank]}
        below = Measured(-_at_no_latency(printed))
        yield ("Section III-A", "190 ns, parabola through the printed value", f"{metric} below zero without latency"), below


PRINTED_AT_190_NS = {"Canneal": 190.0, "Streamcluster": 119.0}
"""Kernel -> slowdown in percent at 190 ns of added latency (section III-A.1)."""


def _at_no_latency(points: Mapping[int, float]) -> float:
    """Return the slowdown at 0 ns by the parabola through three points, ns -> percent."""
    return float(np.polynomial.Polynomial.fit([*points], [*points.values()], 2)(0.0))


def _parabola(near: float, far: float, ns: float) -> float:
    """Return the slowdown at a latency by the parabola through no slowdown at 0 ns and the values at 180 and 280 ns."""
    square = (far / FAR_NS - near / NEAR_NS) / (FAR_NS - NEAR_NS)
    return ns * (near / NEAR_NS + square * (ns - NEAR_NS))


def marginals(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure the properties of the traces that section III-B prints, on the generated traces."""
    by_seed = [published_marginals(cells.paper.generator, seed) for seed in range(cells.seed_count)]
    for metric in by_seed[0]:
        yield ("Section III-B", cells.machine, metric), over_seeds([each[metric] for each in by_seed])


@lru_cache(maxsize=64)
def published_marginals(generator: str, seed: int) -> Mapping[str, float]:
    """Return the properties of a generated trace that section III-B prints."""
    jobs = generate(generator, seed=seed)
    memory_gb, minutes = jobs.request("memory") / 1024, jobs.duration / (60 * SECOND)
    return {
        "jobs": float(len(jobs.id)),
        "days of submission": float(jobs.submit.max() - jobs.submit.min()) / (24 * HOUR),
        "jobs shorter than 10 minutes": 100 * float((minutes < 10).mean()),
        "middle of the most frequent 32 GB bin of memory per node": 16.0
        + 32 * int(np.bincount((memory_gb // 32).astype(int)).argmax()),
        "jobs with more than 512 GB per node": 100 * float((memory_gb > 512).mean()),
    }


def figure_7(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure Figure 7: every order at every pool size."""
    machine, first, last = cells.machine, cells.sizes[0], cells.sizes[-1]
    for order in ORDERS:
        where = f"{machine}, {order}"
        fall = cells(SLOWDOWN, order, first) / cells(SLOWDOWN, order, last) - 1
        metric = "fall of mean bounded slowdown from the smallest to the largest pool"
        yield ("Figure 7", where, metric), over_seeds(fall)
        if len(cells.sizes) > 1:
            yield from _plateau(cells, order)
        for metric, name in ((THROUGHPUT, "throughput"), ("utilization", "utilization")):
            rise = cells(metric, order, last) / cells(metric, order, first) - 1
            yield ("Figure 7", where, f"rise of {name} from the smallest to the largest pool"), over_seeds(rise)
    for size in cells.sizes:
        if machine == "perlmutter" or size < cells.paper.limited:
            for which, metric in ((f"{machine}, {size} TB", SLOWDOWN), (f"{machine}, {size} TB, all jobs", f"all_{SLOWDOWN}")):
                name = "lead of FM in mean bounded slowdown over the best other order"
                yield ("Figure 7", which, name), over_seeds(cells.lead(size, metric))
    many = cells.repeated
    last_place = many.others(THROUGHPUT, "fcfs", last, np.min) / many(THROUGHPUT, "fcfs", last) - 1
    yield ("Figure 7", machine, "how far FCFS is the last in throughput at the largest pool"), over_seeds(last_place)
    for metric, name in ((THROUGHPUT, "throughput"), ("utilization", "utilization")):
        fm, least, most = many(metric, "fm", last), *(many.others(metric, "fm", last, f) for f in (np.min, np.max))
        inside = np.minimum(fm / least, most / fm) - 1
        name = f"how far FM is from the first and the last in {name} at the largest pool"
        yield ("Figure 7", machine, name), over_seeds(inside)
    yield from _spreads(cells)
    yield from _figure_7_perlmutter(cells) if machine == "perlmutter" else _figure_7_juwels(cells)


def _plateau(cells: FairMemoryResults, order: str) -> Iterator[KeyedRow]:
    """Yield throughput and utilization at the second-largest pool divided by those at the largest: 1 if they level off."""
    near, last = cells.sizes[-2:]
    if (near, last) == cells.paper.sizes[-2:]:
        for metric, name in ((THROUGHPUT, "throughput"), ("utilization", "utilization")):
            level = over_seeds(cells(metric, order, near) / cells(metric, order, last))
            yield ("Figure 7", f"{cells.machine}, {order}", f"{name} at the second-largest pool over the largest"), level


def _spread(cells: FairMemoryResults, metric: str, size: int, highest: Callable[..., FloatArray]) -> FloatArray:
    """Return the difference or ratio (`highest`) of the greatest and least values over all orders, seed by seed."""
    each = [cells(metric, order, size) for order in ORDERS]
    return highest(np.max(each, axis=0), np.min(each, axis=0))


def _spreads(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Yield how far apart the orders are in throughput and in utilization."""
    last, limited = cells.sizes[-1], cells.paper.limited
    if cells.machine == "perlmutter" and limited in cells.sizes:
        near, far = (_spread(cells, THROUGHPUT, size, np.divide) - 1 for size in (limited, last))
        metric = f"{100 * INDISTINCT:.0f} % minus the spread of the orders in throughput"
        yield ("Figure 7", f"perlmutter, {limited} TB", metric), over_seeds(INDISTINCT - near)
        metric = f"growth of the spread of the orders in throughput from {limited} TB to the largest pool"
        yield ("Figure 7", "perlmutter", metric), over_seeds(far - near)
    many = cells.repeated
    other = many.on("juwels", cells.reading)
    if cells.machine == "juwels":
        apart = 100 * _spread(many, "utilization", last, np.subtract)
        yield ("Figure 7", f"juwels, {last} TB", "spread of the orders in utilization"), over_seeds(apart)
    elif 44 in cells.sizes:
        apart = 100 * _spread(many, "utilization", 44, np.subtract)
        yield ("Figure 7", "perlmutter, 44 TB", "spread of the orders in utilization"), over_seeds(apart)
        if other.sizes:
            more = apart - 100 * _spread(other, "utilization", other.sizes[-1], np.subtract)
            yield ("Figure 7", "both", "spread of the orders in utilization: Perlmutter minus JUWELS"), over_seeds(more)


def _figure_7_perlmutter(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    last, where = cells.sizes[-1], ("Figure 7", "perlmutter")
    lead = [100 * (1 - cells(SLOWDOWN, "fm", s) / cells(SLOWDOWN, "sjf", s)) for s in cells.sizes]
    yield (*where, "maximum lead of FM over SJF in mean bounded slowdown"), over_seeds(np.max(lead, axis=0))
    fair = np.max([cells(THROUGHPUT, "fair", s) for s in cells.sizes], axis=0)
    yield (*where, "throughput of FAIR at its best"), over_seeds(fair)
    many = cells.repeated
    yield (*where, "throughput of FCFS at the largest pool"), over_seeds(many(THROUGHPUT, "fcfs", last))
    first_place = many(THROUGHPUT, "fair", last) / many.others(THROUGHPUT, "fair", last, np.max) - 1
    yield (*where, "lead of FAIR in throughput at the largest pool"), over_seeds(first_place)
    if 44 in cells.sizes:
        yield from _utilizations(cells, 44, "fair", "sjf")


def _figure_7_juwels(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    yield from _utilizations(cells, cells.sizes[-1], "fcfs", "f1")
    ahead = np.array([cells(SLOWDOWN, "sjf", s) < cells(SLOWDOWN, "fm", s) for s in cells.sizes])
    sizes = np.array(cells.sizes, dtype=np.float64)
    least = np.where(ahead.any(axis=0), sizes[ahead.argmax(axis=0)], np.nan)  # NaN for seeds in which SJF never leads
    yield ("Figure 7", "juwels", "smallest pool from which SJF beats FM in mean bounded slowdown"), over_seeds(least)


def _utilizations(cells: FairMemoryResults, size: int, first: str, last: str) -> Iterator[KeyedRow]:
    """Yield the utilization of the orders that the paper ranks first and last, and their margins in percentage points."""
    where, metric, cells = ("Figure 7", f"{cells.machine}, {size} TB"), "utilization", cells.repeated
    for order in (first, last):
        yield (*where, f"utilization of {order.upper()}"), over_seeds(100 * cells(metric, order, size))
    ahead = 100 * (cells(metric, first, size) - cells.others(metric, first, size, np.max))
    yield (*where, f"lead of {first.upper()} in utilization"), over_seeds(ahead)
    behind = 100 * (cells.others(metric, last, size, np.min) - cells(metric, last, size))
    yield (*where, f"how far {last.upper()} is the last in utilization"), over_seeds(behind)


def figure_8(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure Figure 8: the fairness margins in hours per job, so that they are comparable with waits."""
    for size in (cells.paper.limited, cells.paper.sufficient):
        jobs, where = cells("compared_jobs", "fm", size) * 3600, ("Figure 8", f"{cells.machine}, {size} TB")
        for short, metric in FAIRNESS.items():
            lead = (cells.others(metric, "fm", size, np.min) - cells(metric, "fm", size)) / jobs
            yield (*where, f"lead of FM in {short}"), over_seeds(lead)
            worst = _most_discriminating(cells.machine, size, short)
            if worst is not None:
                behind = (cells(metric, worst, size) - cells.others(metric, worst, size, np.max)) / jobs
                yield (*where, f"how far {worst.upper()} is the last in {short}"), over_seeds(behind)


def _most_discriminating(machine: str, size: int, metric: str) -> str | None:
    """Return the order that the paper calls least fair, or None if it names none."""
    if machine == "perlmutter" and metric in ("D", "MD"):
        return "fcfs"
    return "f1" if machine == "juwels" or size == MACHINES[machine].sufficient else None


def figure_9(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure Figure 9: pools for the whole system compared with pools for each rack."""

    def over(metric: str, size: int) -> FloatArray:
        ratios: FloatArray = cells(metric, "fm", size, scope="system") / cells(metric, "fm", size)
        return ratios

    machine, limited, sufficient, cells = cells.machine, cells.paper.limited, cells.paper.sufficient, cells.repeated
    tail = over_seeds(over("all_p999_bounded_slowdown", limited) - 1)
    yield ("Figure 9", f"{machine}, {limited} TB", "99.9th percentile of bounded slowdown: system over rack"), tail
    mean = over_seeds(over(f"all_{SLOWDOWN}", sufficient))
    yield ("Figure 9", f"{machine}, {sufficient} TB", "mean bounded slowdown: system over rack"), mean
    for scope in SCOPES:
        longer = cells(f"all_{SLOWDOWN}", "fm", limited, scope=scope) / cells(f"all_{SLOWDOWN}", "fm", 0) - 1
        metric = f"mean bounded slowdown over that with 512 GB in every node: {scope}"
        yield ("Figure 9", f"{machine}, {limited} TB", metric), over_seeds(longer)
    growth = _distance(cells, limited) - _distance(cells, sufficient)
    yield (
        ("Figure 9", machine, "growth of the distance of the CDFs from the sufficient to the limited pool"),
        over_seeds(growth),
    )


def _distance(cells: FairMemoryResults, size: int) -> FloatArray:
    """Return the greatest vertical distance between any two of Figure 9's three CDFs, (n_seed,); NaN if one was not run."""
    drawn = [cells.case("fm", 0), *(cells.case("fm", size, scope=scope) for scope in SCOPES)]
    cdfs = [np.array([run[CDF] for run in cells.runs(case)]) for case in drawn]
    if not all(len(cdf) for cdf in cdfs):
        return np.full(1, np.nan)
    distances: FloatArray = np.max([np.abs(a - b).max(axis=1) for a, b in combinations(cdfs, 2)], axis=0)
    return distances


def figure_10(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure Figure 10: throughput per memory dollar."""
    paper, here = cells.paper, ("Figure 10", cells.machine)
    gain = {s: cells(PER_DOLLAR, "fm", s) / cells(PER_DOLLAR, "fm", 0) for s in cells.sizes}
    all_gains = np.array(list(gain.values()))
    best = np.array(cells.sizes)[all_gains.argmax(axis=0)].astype(np.float64)
    yield (*here, "pool per rack with the best throughput per memory dollar"), over_seeds(best)
    yield (*here, "best throughput per memory dollar over the 512 GB baseline"), over_seeds(all_gains.max(axis=0))
    saved = {size: memory_saved_pct(cells.machine, size) for size in cells.sizes}
    yield (*here, "memory saved at our best pool size"), over_seeds([saved[size] for size in best.astype(np.int64).tolist()])
    for word, outer, inner in (("rise", paper.sizes[0], paper.plateau), ("decline", paper.sizes[-1], paper.optimum)):
        if outer in gain and inner in gain:
            metric = f"{word} of throughput per memory dollar, {inner} TB over {outer} TB"
            yield (*here, metric), over_seeds(gain[inner] / gain[outer] - 1)
    if cells.machine == "juwels" and paper.sizes[-1] in gain:
        metric = "how far throughput per memory dollar is below the 512 GB baseline at the largest pool"
        yield (*here, metric), over_seeds(1 - gain[paper.sizes[-1]])
    if paper.plateau != paper.optimum and paper.plateau in gain:
        metric = f"throughput per memory dollar, {paper.plateau} TB over {paper.optimum} TB"
        yield (*here, metric), over_seeds(gain[paper.plateau] / gain[paper.optimum])


def memory_saved(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure the arithmetic of Section IV-C, which needs no runs."""
    where, paper = ("Section IV-C", cells.machine), cells.paper
    installed, pooled = (_terabytes(cell_of(cells.machine, size).machine) for size in (0, paper.optimum))
    yield (*where, "total memory of the baseline"), Measured(installed)
    yield (*where, "total memory at the published optimum"), Measured(pooled)
    yield (*where, "memory saved at the published optimum"), Measured(memory_saved_pct(cells.machine, paper.optimum))
    dollars = (installed - pooled) * 1024 * DOLLARS_PER_GB / 1e6
    yield (*where, "memory cost saved at the published optimum"), Measured(dollars)


def memory_saved_pct(machine: str, size_tb: int) -> float:
    """Return how much less memory, in percent, pools of a size in each rack need than 512 GB in every node."""
    installed, pooled = (_terabytes(cell_of(machine, size).machine) for size in (0, size_tb))
    return 100 * (1 - pooled / installed)


def _terabytes(machine: Machine) -> float:
    """Return the memory of all nodes and pools, TB."""
    layout = machine.racks
    nodes = int(machine.capacity[layout.nodes, layout.node_column] @ layout.local)
    pools = sum(int(machine.capacity[p, layout.memory_column]) for p in layout.pools.tolist() if p >= 0)
    return (nodes + pools) / TB


def figure_11(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure Figure 11: memory utilization."""
    size, cells = cells.paper.optimum, cells.repeated
    for where, pool in ((f"{cells.machine}, baseline", 0), (f"{cells.machine}, {size} TB", size)):
        memory, mode = (cells(metric, "fm", pool) for metric in ("mean_memory_utilization", "modal_memory_bin"))
        yield ("Figure 11", where, "mean memory utilization"), over_seeds(100 * memory)
        yield ("Figure 11", where, "middle of the most frequent 10 % bin"), over_seeds(mode)


def figure_12(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure Figure 12: degradation."""
    names = ("share_under_5pct_degradation", "mean_degradation", "share_150pct_degradation")
    few, mean, extreme = (100 * cells(name, "fm", cells.paper.optimum) for name in names)
    at = f"{cells.machine}, {cells.paper.optimum} TB"
    yield ("Figure 12", at, "jobs degraded by less than 5 %"), over_seeds(few)
    yield ("Figure 12", at, "mean degradation"), over_seeds(mean)
    yield ("Figure 12", at, "how far jobs degraded by 150 % or more stay below 0.01 %"), over_seeds(0.01 - extreme)


def explain(results: FairMemoryResults) -> list[str]:
    """Describe which order has the lowest mean bounded slowdown at each pool size, without and with the switches."""
    paragraphs = []
    for machine, (name, reading) in product(MACHINES, (("spec", SPEC), (ALL_SWITCHES, COMBINED))):
        cells = results.on(machine, reading)
        best = {size: min(ORDERS, key=lambda order: float(cells(SLOWDOWN, order, size).mean())) for size in cells.sizes}
        words = ", ".join(f"{size} TB {order.upper()}" for size, order in best.items())
        paragraphs.append(f"{machine}, {name}: the order with the lowest mean bounded slowdown at each pool size: {words}.")
    return paragraphs
