"""Measured values of the rows that we add to those of the paper: other assumptions, metrics and traces."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from poolwise_reproductions.fair_memory.readings import COMPARED, FairMemoryReading
from poolwise_reproductions.fair_memory.results import SLOWDOWN, FairMemoryResults, over_seeds
from poolwise_reproductions.fair_memory.runs import EXTREME, FAIRNESS, LATENCIES
from poolwise_reproductions.fair_memory.traces import TRACES
from poolwise_reproductions.results import KeyedRow

BY_NODES = FairMemoryReading("nodes only, no extra")


def latencies(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure the two comparisons of Figure 9 with each reading of the latency of the scope system."""
    limited, sufficient = cells.paper.limited, cells.paper.sufficient
    for latency, (label, _) in LATENCIES.items():
        for size, metric, name, less in (
            (limited, "all_p999_bounded_slowdown", "99.9th percentile of bounded slowdown: system over rack", 1.0),
            (sufficient, f"all_{SLOWDOWN}", "mean bounded slowdown: system over rack", 0.0),
        ):
            system = cells.values(cells.case("fm", size, scope="system", latency=latency), metric)
            if len(system):
                where = f"{cells.machine}, {size} TB, {label}"
                yield ("Latency of the system scope", where, name), over_seeds(system / cells(metric, "fm", size) - less)


def extremes(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure the lead of FM in D20 and MD20, which section II-C defines and the paper does not evaluate."""
    for size in (cells.paper.limited, cells.paper.sufficient):
        jobs = cells("compared_jobs", "fm", size) * 3600
        for short, metric in EXTREME.items():
            lead = (cells.others(metric, "fm", size, np.min) - cells(metric, "fm", size)) / jobs
            yield ("Section II-C", f"{cells.machine}, {size} TB", f"lead of FM in {short}"), over_seeds(lead)


def parity(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure how much each assumption that the paper leaves open changes the mean bounded slowdown."""
    printed = cells.under(FairMemoryReading(f1="f1_as_printed"))
    for size in (cells.paper.limited, cells.paper.sufficient):
        at = f"{cells.machine}, {size} TB"
        inverted = printed(SLOWDOWN, "f1", size) / cells(SLOWDOWN, "f1", size)
        name = "F1 as printed over F1 as its authors defined it: mean bounded slowdown"
        yield ("Parity", at, name), over_seeds(inverted)
        for order in ("sjf", "fm"):
            curved = cells.values(cells.case(order, size, backfill="easy", curve="quadratic"), SLOWDOWN)
            if len(curved):
                name = "quadratic over empirical slowdown curve: mean bounded slowdown"
                yield ("Parity", f"{at}, {order}", name), over_seeds(curved / cells(SLOWDOWN, order, size))


def discrimination(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure the causes that are given for Figure 8: the margin of FCFS in discrimination, and the benefit of SJF over FM."""
    for size in (cells.paper.limited, cells.paper.sufficient):
        jobs, where = cells("compared_jobs", "fm", size) * 3600, ("Discrimination", f"{cells.machine}, {size} TB")
        least = (cells.others(FAIRNESS["D"], "fcfs", size, np.min) - cells(FAIRNESS["D"], "fcfs", size)) / jobs
        yield (*where, "lead of FCFS in D against the same machine"), over_seeds(least)
        more = (cells("benefit_s", "sjf", size) - cells("benefit_s", "fm", size)) / jobs
        yield (*where, "benefit of SJF minus that of FM"), over_seeds(more)


def backfills(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure the lead of FM over SJF under each backfilling policy, to find the part of the policy that decides it."""
    for size in cells.sizes:
        for backfill in COMPARED:
            under = cells.under(FairMemoryReading(backfill))
            lead = under(SLOWDOWN, "sjf", size) / under(SLOWDOWN, "fm", size) - 1
            where = f"{cells.machine}, {size} TB, {backfill}"
            yield ("Backfilling", where, "lead of FM over SJF in mean bounded slowdown"), over_seeds(lead)


def sensitivity(cells: FairMemoryResults) -> Iterator[KeyedRow]:
    """Measure the lead of FM, and the share of jobs hardly degraded, on other traces; backfilling considers nodes alone."""
    optimum = cells.paper.optimum
    for trace, variant in TRACES.items() if cells.machine == "perlmutter" else ():
        other = cells.under(BY_NODES, trace)
        for size in other.sizes:
            where = f"{cells.machine}, {size} TB, {trace}, {BY_NODES.backfill}"
            yield ("Sensitivity", where, "lead of FM over the best other order"), over_seeds(other.lead(size))
        if variant.share is not None and optimum in other.sizes:
            few = 100 * other("share_under_5pct_degradation", "fm", optimum)
            where = f"{cells.machine}, {optimum} TB, {trace}"
            yield ("Sensitivity", where, "jobs degraded by less than 5 %"), over_seeds(few)
