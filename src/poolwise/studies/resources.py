"""Resource use, power and price of runs, from the stored facts of cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from poolwise.hashing import Json
from poolwise.metrics.resource_use import ResourceUse
from poolwise.studies.distributions import tables
from poolwise.studies.measured import CellResult, MeasuredStudy


@dataclass(frozen=True)
class Resources:
    """Measurements of resources in a run.

    Attributes
    ----------
    use : resource -> measured use
    watts : mean power, W; NaN if unknown
    dollars : purchase price, $; NaN if unknown
    """

    use: Mapping[str, ResourceUse]
    watts: float
    dollars: float


def resources(result: MeasuredStudy, cell: CellResult) -> Resources | None:
    """Return the resource use of a cell, or None if it was not measured."""
    stored: Json = result.facts[cell.key].get("resources", {})
    if not stored.get("use"):
        return None
    return Resources({row[0]: ResourceUse(*row) for row in stored["use"]}, cell.watts, cell.dollars)


def resource_frame(result: MeasuredStudy) -> pl.DataFrame | None:
    """Return one row per cell and resource, or None if no cell was measured."""

    def rows(cell: CellResult) -> Iterator[tuple[Any, ...]]:
        used = resources(result, cell)
        if used is not None:
            for use in used.use.values():
                yield use.resource, use.installed, use.used, use.stranded, used.watts, used.dollars

    names = ("resource", "installed", "used", "stranded", "mean_watts", "purchase_dollars")
    frames = [table for table in tables(result, rows, names) if len(table)]
    return pl.concat(frames) if frames else None
