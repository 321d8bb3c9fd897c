"""What a study's means hide: how memory utilisation and degradation are distributed, and memory in use over time.

Source: specs of the memory pools, "Measurement" (bins of 10 % and 5 %); Li et al., Fair Memory, Figures 11 and 12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from poolwise.metrics.memory import (
    Histogram,
    Steps,
    degradation_histogram,
    memory_utilization,
    utilization_histogram,
)
from poolwise.studies.measured import CellResult, MeasuredStudy
from poolwise.studies.study import Study
from poolwise.units import SECOND

PARTS = 96
"""Parts into which the measured time is cut for a curve."""
AT_ONCE = 1000
"""Cells whose rows are in memory at a time."""
_Row = tuple[Any, ...]


def histograms(result: MeasuredStudy, cell: CellResult) -> Mapping[str, Histogram]:
    """Name -> histogram: memory utilisation by time in bins of 10 %, degradation by jobs in bins of 5 %."""
    outcomes = result.outcomes(cell)
    return {
        "memory_utilization": utilization_histogram(memory_utilization(outcomes, result.window(cell))),
        "degradation": degradation_histogram(outcomes, result.population(cell)),
    }


def memory_in_use(result: MeasuredStudy, cell: CellResult) -> Steps:
    """Memory utilisation over the measured time, means of `PARTS` equal parts."""
    return memory_utilization(result.outcomes(cell), result.window(cell)).means(PARTS)


def distributions(result: MeasuredStudy) -> Iterator[pl.DataFrame]:
    """One row per cell, quantity and bin: the share of the time or of the jobs with a value from `low` to below `high`."""

    def rows(cell: CellResult) -> Iterator[_Row]:
        for name, histogram in histograms(result, cell).items():
            edges = histogram.edges.tolist()
            yield from ((name, *bin) for bin in zip(edges, edges[1:], histogram.share.tolist(), strict=False))

    return _tables(result, rows, ("quantity", "low", "high", "share"))


def memory_over_time(result: MeasuredStudy) -> Iterator[pl.DataFrame]:
    """One row per cell and part of the measured time: the mean memory utilisation in it."""

    def rows(cell: CellResult) -> Iterator[_Row]:
        steps = memory_in_use(result, cell)
        seconds = (steps.time / SECOND).tolist()
        return zip(seconds, seconds[1:], steps.value.tolist(), strict=False)

    return _tables(result, rows, ("begin_s", "end_s", "memory_utilization"))


def as_csv(tables: Iterable[pl.DataFrame]) -> Iterator[bytes]:
    """Write tables of the same columns as one CSV file, in parts."""
    for k, table in enumerate(tables):
        yield table.write_csv(include_header=not k).encode()


def varied(study: Study, cells: Sequence[CellResult]) -> dict[str, list[Any]]:
    """Columns of what a study varies, a row for each of some cells; values of mixed types as text."""
    types = {path: {type(cell.parameters[path]) for cell in study.cells} for path in study.vary}
    return {
        path: [cell.parameters[path] if len(types[path]) == 1 else str(cell.parameters[path]) for cell in cells]
        for path in study.vary
    }


def _tables(
    result: MeasuredStudy, rows_of: Callable[[CellResult], Iterable[_Row]], names: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Rows with their cells, of so many cells at a time as fit into memory; what was varied, seed and key come first."""
    for begin in range(0, len(result.cells), AT_ONCE):
        cells: list[CellResult] = []
        rows: list[_Row] = []
        for cell in result.cells[begin : begin + AT_ONCE]:
            rows += rows_of(cell)
            cells += [cell] * (len(rows) - len(cells))
        whose = {**varied(result.study, cells), "seed": [cell.seed for cell in cells], "key": [cell.key for cell in cells]}
        yield pl.DataFrame({**whose, **{name: [row[k] for row in rows] for k, name in enumerate(names)}})
