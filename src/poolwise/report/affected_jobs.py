"""Waits in the recommended run by job size, memory and, if the trace has them, user and account."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray
from poolwise.metrics.slowdown import wait_s
from poolwise.report.page import PageTable, TableRow
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.cells import workload_of
from poolwise.units import format_memory, format_time

TITLE = "Waits by group of jobs"
OWNER_ATTRIBUTES = ("user", "account", "group", "queue", "partition")
MAX_NAMES = 10
"""Maximum number of users or accounts to show: those with the longest total wait."""
CLASSES = 4
"""Number of size and memory classes, with about the same number of jobs each."""

WaitGroup = tuple[str, BoolArray]


def waits_by_group(result: StudyResult, cell: CellResult) -> PageTable:
    """Return a table of the median and 95th percentile of the wait of each group of jobs, compared with today."""
    outcomes, today, population = result.outcomes(cell), result.today(cell), result.population(cell)
    waits = wait_s(outcomes)
    waits_today = None if today is None else wait_s(today)
    rows = []
    for label, group in _groups(result, cell):
        chosen = group & population
        if not chosen.any():
            continue
        cells = [label, f"{int(chosen.sum()):,}", *_summarize(waits[chosen])]
        if waits_today is not None:
            cells += [*_summarize(waits_today[chosen]), f"{int((waits > waits_today)[chosen].sum()):,}"]
        rows.append(TableRow(cells))
    header = ["group", "jobs", "median wait", "95th percentile of the wait"]
    header += [] if waits_today is None else ["median wait today", "95th percentile today", "jobs that wait longer"]
    caption = (
        f"Jobs of seed {cell.seed} after the warm-up that every run finished. Size and memory classes have about the same "
        f"number of jobs each; of users and accounts, the {MAX_NAMES} with the longest total wait are shown."
    )
    return PageTable(TITLE, header, rows, caption)


def _summarize(waits: NDArray[np.float64]) -> list[str]:
    return [format_time(float(np.median(waits))), format_time(float(np.quantile(waits, 0.95)))]


def _groups(result: StudyResult, cell: CellResult) -> Iterator[WaitGroup]:
    outcomes = result.outcomes(cell)
    yield "all jobs", np.ones(len(outcomes), dtype=np.bool_)
    for low, high, chosen in _classes(outcomes.nodes):
        yield (f"{low:,} node{'s' if low > 1 else ''}" if low == high else f"{low:,} to {high:,} nodes"), chosen
    for low, high, chosen in _classes(outcomes.memory):
        yield (
            f"{format_memory(low)} per node" if low == high else f"{format_memory(low)} to {format_memory(high)} per node",
            chosen,
        )
    attributes = workload_of(result.simulated(cell)).attributes
    waits = wait_s(outcomes)
    for name in OWNER_ATTRIBUTES:
        if name in attributes:
            yield from _by_name(name, attributes[name], waits, result.population(cell))


def _classes(values: NDArray[np.int64]) -> Iterator[tuple[int, int, BoolArray]]:
    """Yield (low, high, jobs) of classes split at quantiles; equal values stay in one class."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, CLASSES + 1)[1:], method="inverted_cdf"))
    for k, top in enumerate(edges):
        chosen = (values <= top) & ((values > edges[k - 1]) if k else True)
        yield int(values[chosen].min()), int(values[chosen].max()), chosen


def _by_name(label: str, column: NDArray[np.generic], waits: NDArray[np.float64], population: BoolArray) -> Iterator[WaitGroup]:
    names = np.unique(column[population])
    totals = {name: float(waits[(column == name) & population].sum()) for name in names.tolist()}
    for name in sorted(totals, key=lambda name: (-totals[name], str(name)))[:MAX_NAMES]:
        yield f"{label} {name}", column == name
