"""Rows that we add to the paper: effects of each difference of the authors' runs, and sensitivity to the traces."""

from __future__ import annotations

import numpy as np

from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.reproductions.fair_memory.claims import SLOWDOWN, FairMemoryCells, over_seeds
from poolwise.reproductions.fair_memory.readings import BACKFILLS, FairMemoryReading
from poolwise.reproductions.fair_memory.runs import FAIRNESS, MACHINES, FairMemoryResults
from poolwise.reproductions.fair_memory.traces import TRACES

BY_NODES = FairMemoryReading("nodes only, no extra")
SEARCHED = tuple(range(8, 49, 4))
"""Pool sizes at which the other traces run, TB per rack of the Perlmutter-like machine."""


def measure_extensions(results: FairMemoryResults) -> dict[Key, Measured]:
    """Measure the rows that we add to the paper."""
    found: dict[Key, Measured] = {}
    for machine in MACHINES:
        cells = FairMemoryCells(results, machine)
        if cells.sizes:
            found |= _parity(cells) | _backfills(cells) | _discrimination(cells)
    return {key: value for key, value in (found | _sensitivity(results)).items() if not np.isnan(value.value)}


def _parity(cells: FairMemoryCells) -> dict[Key, Measured]:
    """Measure how much each deviation of the authors' own runs changes the mean bounded slowdown."""
    paper, found = cells.paper, {}
    printed = FairMemoryCells(cells.results, cells.machine, FairMemoryReading(f1="f1_as_printed"))
    for size in (paper.limited, paper.sufficient):
        at = f"{cells.machine}, {size} TB"
        inverted = printed(SLOWDOWN, "f1", size) / cells(SLOWDOWN, "f1", size)
        name = "F1 as printed over F1 as its authors defined it: mean bounded slowdown"
        found["Parity", at, name] = over_seeds(inverted)
        for order in ("sjf", "fm"):
            where = {"machine": cells.machine, "order": order, "size_tb": size, "scope": "rack"}
            curved = cells.results.seeds(SLOWDOWN, backfill="easy, quadratic slowdown", **where)
            if len(curved):
                name = "quadratic over empirical slowdown curve: mean bounded slowdown"
                found["Parity", f"{at}, {order}", name] = over_seeds(curved / cells(SLOWDOWN, order, size))
    return found


def _discrimination(cells: FairMemoryCells) -> dict[Key, Measured]:
    """Measure what the reasons of Figure 8 state: the margin of FCFS in discrimination, and the benefit of SJF over FM."""
    found: dict[Key, Measured] = {}
    for size in (cells.paper.limited, cells.paper.sufficient):
        jobs, where = cells("compared_jobs", "fm", size) * 3600, ("Discrimination", f"{cells.machine}, {size} TB")
        least = (cells.others(FAIRNESS["D"], "fcfs", size, np.min) - cells(FAIRNESS["D"], "fcfs", size)) / jobs
        found[*where, "lead of FCFS in D against the same machine"] = over_seeds(least)
        more = (cells("benefit_s", "sjf", size) - cells("benefit_s", "fm", size)) / jobs
        found[*where, "benefit of SJF less that of FM"] = over_seeds(more)
    return found


def _backfills(cells: FairMemoryCells) -> dict[Key, Measured]:
    """Measure the lead of FM over SJF under each backfilling, to find the part of the authors' backfilling that decides it."""
    found: dict[Key, Measured] = {}
    for size in cells.sizes:
        for backfill in BACKFILLS:
            under = FairMemoryCells(cells.results, cells.machine, FairMemoryReading(backfill))
            lead = under(SLOWDOWN, "sjf", size) / under(SLOWDOWN, "fm", size) - 1
            key = ("Backfilling", f"{cells.machine}, {size} TB, {backfill}", "lead of FM over SJF in mean bounded slowdown")
            found[key] = over_seeds(lead)
    return found


def _sensitivity(results: FairMemoryResults) -> dict[Key, Measured]:
    """Measure the lead of FM over the best other order on other traces, with the backfilling that the authors ran."""
    found: dict[Key, Measured] = {}
    for trace in TRACES:
        cells = FairMemoryCells(results, "perlmutter", BY_NODES, trace)
        for size in cells.sizes:
            found[
                "Sensitivity", f"perlmutter, {size} TB, {trace}, {BY_NODES.backfill}", "lead of FM over the best other order"
            ] = over_seeds(cells.lead(size))
    return found
