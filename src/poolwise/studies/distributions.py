"""What a study's means hide: how memory utilisation and degradation are distributed, and memory in use over time.

Source: specs of the memory pools, "Measurement" (bins of 10 % and 5 %); Li et al., Fair Memory, Figures 11 and 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def distributions(result: MeasuredStudy) -> pl.DataFrame:
    """One row per cell, quantity and bin: the share of the time or of the jobs with a value from `low` to below `high`."""
    cells: list[CellResult] = []
    rows: list[tuple[Any, ...]] = []
    for cell in result.cells:
        for name, histogram in histograms(result, cell).items():
            edges = histogram.edges.tolist()
            rows += [(name, *bin) for bin in zip(edges, edges[1:], histogram.share.tolist(), strict=False)]
        cells += [cell] * (len(rows) - len(cells))
    return _table(result, cells, rows, ("quantity", "low", "high", "share"))


def memory_over_time(result: MeasuredStudy) -> pl.DataFrame:
    """One row per cell and part of the measured time: the mean memory utilisation in it."""
    cells: list[CellResult] = []
    rows: list[tuple[Any, ...]] = []
    for cell in result.cells:
        steps = memory_in_use(result, cell)
        seconds = (steps.time / SECOND).tolist()
        rows += zip(seconds, seconds[1:], steps.value.tolist(), strict=False)
        cells += [cell] * (len(rows) - len(cells))
    return _table(result, cells, rows, ("begin_s", "end_s", "memory_utilization"))


def varied(study: Study, cells: Sequence[CellResult]) -> dict[str, list[Any]]:
    """Columns of what a study varies, a row for each of some cells; values of mixed types as text."""
    types = {path: {type(cell.parameters[path]) for cell in study.cells} for path in study.vary}
    return {
        path: [cell.parameters[path] if len(types[path]) == 1 else str(cell.parameters[path]) for cell in cells]
        for path in study.vary
    }


def _table(
    result: MeasuredStudy, cells: Sequence[CellResult], rows: Sequence[tuple[Any, ...]], names: Sequence[str]
) -> pl.DataFrame:
    """Rows with their cells; what was varied, seed and key come first."""
    whose = {**varied(result.study, cells), "seed": [cell.seed for cell in cells], "key": [cell.key for cell in cells]}
    return pl.DataFrame({**whose, **{name: [row[k] for row in rows] for k, name in enumerate(names)}})
