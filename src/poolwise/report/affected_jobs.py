"""Who waits: the jobs of the recommended run by size, memory and, where the log names them, user and account."""

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

NAMED = ("user", "account", "group", "queue", "partition")
MOST = 10
"""Users or accounts that are shown, those with the longest waits in sum."""
CLASSES = 4
"""Classes of size and of memory, of about as many jobs each."""

WaitGroup = tuple[str, BoolArray]


def who_waits(result: StudyResult, cell: CellResult) -> PageTable:
    """Median and 95th percentile of the wait of each group, and today's beside them; every class counts all its jobs."""
    outcomes, today, population = result.outcomes(cell), result.today(cell), result.population(cell)
    then = wait_s(outcomes)
    now = None if today is None else wait_s(today)
    rows = []
    for label, chosen in _groups(result, cell):
        mine = chosen & population
        if not mine.any():
            continue
        cells = [label, f"{int(mine.sum()):,}", *_said(then[mine])]
        if now is not None:
            cells += [*_said(now[mine]), f"{int((then > now)[mine].sum()):,}"]
        rows.append(TableRow(cells))
    header = ["jobs", "number", "median wait", "95th percentile"]
    header += [] if now is None else ["median today", "95th percentile today", "wait longer"]
    caption = (
        f"Jobs of seed {cell.seed} after the warm-up that every run finished. Classes hold about as many jobs each; of users "
        f"and accounts those {MOST} whose jobs wait longest in sum."
    )
    return PageTable("Who waits", header, rows, caption)


def _said(waits: NDArray[np.float64]) -> list[str]:
    return [format_time(float(np.median(waits))), format_time(float(np.quantile(waits, 0.95)))]


def _groups(result: StudyResult, cell: CellResult) -> Iterator[WaitGroup]:
    outcomes = result.outcomes(cell)
    yield "all", np.ones(len(outcomes), dtype=np.bool_)
    for low, high, chosen in _classes(outcomes.nodes):
        yield (f"{low:,} node{'s' if low > 1 else ''}" if low == high else f"{low:,} to {high:,} nodes"), chosen
    for low, high, chosen in _classes(outcomes.memory):
        yield f"{format_memory(low)} a node" if low == high else f"{format_memory(low)} to {format_memory(high)} a node", chosen
    attributes = workload_of(result.simulated(cell)).attributes
    waits = wait_s(outcomes)
    for name in NAMED:
        if name in attributes:
            yield from _by_name(name, attributes[name], waits, result.population(cell))


def _classes(values: NDArray[np.int64]) -> Iterator[tuple[int, int, BoolArray]]:
    """Divide at quantiles; equal values stay together."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, CLASSES + 1)[1:], method="inverted_cdf"))
    for k, top in enumerate(edges):
        chosen = (values <= top) & ((values > edges[k - 1]) if k else True)
        yield int(values[chosen].min()), int(values[chosen].max()), chosen


def _by_name(what: str, column: NDArray[np.generic], waits: NDArray[np.float64], population: BoolArray) -> Iterator[WaitGroup]:
    names = np.unique(column[population])
    lost = {name: float(waits[(column == name) & population].sum()) for name in names.tolist()}
    for name in sorted(lost, key=lambda name: (-lost[name], str(name)))[:MOST]:
        yield f"{what} {name}", column == name
