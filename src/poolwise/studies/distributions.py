"""Distributions behind a study's means: memory utilization, degradation, and memory in use over time.

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
from poolwise.quantities import SECOND
from poolwise.studies.measured import CellResult, MeasuredStudy
from poolwise.studies.study import Study

PARTS = 96
"""Number of intervals of a curve over the measured time."""
AT_ONCE = 1000
"""Number of cells whose rows are in memory at once."""
_Row = tuple[Any, ...]


def histograms(result: MeasuredStudy, cell: CellResult) -> Mapping[str, Histogram]:
    """Return name -> histogram: time per memory utilization (bins of 10 %), and jobs per degradation (bins of 5 %)."""
    outcomes = result.outcomes(cell)
    return {
        "memory_utilization": utilization_histogram(memory_utilization(outcomes, result.window(cell))),
        "degradation": degradation_histogram(outcomes, result.population(cell)),
    }


def memory_in_use(result: MeasuredStudy, cell: CellResult) -> Steps:
    """Return the memory utilization over the measured time, as means over `PARTS` equal intervals."""
    return memory_utilization(result.outcomes(cell), result.window(cell)).means(PARTS)


def distributions(result: MeasuredStudy) -> Iterator[pl.DataFrame]:
    """Yield one row per cell, quantity and bin: the share of time or jobs with a value in [low, high)."""

    def rows(cell: CellResult) -> Iterator[_Row]:
        for name, histogram in histograms(result, cell).items():
            edges = histogram.edges.tolist()
            yield from ((name, *bin) for bin in zip(edges, edges[1:], histogram.share.tolist(), strict=False))

    return tables(result, rows, ("quantity", "low", "high", "share"))


def memory_over_time(result: MeasuredStudy) -> Iterator[pl.DataFrame]:
    """Yield one row per cell and interval of the measured time, with the mean memory utilization."""

    def rows(cell: CellResult) -> Iterator[_Row]:
        steps = memory_in_use(result, cell)
        seconds = (steps.time / SECOND).tolist()
        return zip(seconds, seconds[1:], steps.value.tolist(), strict=False)

    return tables(result, rows, ("begin_s", "end_s", "memory_utilization"))


def as_csv(tables: Iterable[pl.DataFrame]) -> Iterator[bytes]:
    """Write tables with the same columns to one CSV file, one after the other."""
    for k, table in enumerate(tables):
        yield table.write_csv(include_header=not k).encode()


def varied(study: Study, cells: Sequence[CellResult]) -> dict[str, list[Any]]:
    """Return the columns of varied values, with one row per given cell; values of mixed types become strings."""
    types = {path: {type(cell.parameters[path]) for cell in study.cells} for path in study.vary}
    return {
        path: [cell.parameters[path] if len(types[path]) == 1 else str(cell.parameters[path]) for cell in cells]
        for path in study.vary
    }


def tables(
    result: MeasuredStudy, rows_of: Callable[[CellResult], Iterable[_Row]], names: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Yield tables of rows for `AT_ONCE` cells at a time; columns for varied values, seed and key come first."""
    for begin in range(0, len(result.cells), AT_ONCE):
        cells: list[CellResult] = []
        rows: list[_Row] = []
        for cell in result.cells[begin : begin + AT_ONCE]:
            rows += rows_of(cell)
            cells += [cell] * (len(rows) - len(cells))
        leading = {**varied(result.study, cells), "seed": [cell.seed for cell in cells], "key": [cell.key for cell in cells]}
        yield pl.DataFrame({**leading, **{name: [row[k] for row in rows] for k, name in enumerate(names)}})
