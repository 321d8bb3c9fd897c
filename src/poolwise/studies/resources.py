"""Resource use, power and price of runs, from the stored facts of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from poolwise.hashing import Json
from poolwise.metrics.resource_use import ResourceUse
from poolwise.studies.distributions import varied
from poolwise.studies.measured import CellResult, MeasuredStudy


@dataclass(frozen=True)
class Resources:
    """Measurements of resources in a run.

    Attributes
    ----------
    use : resource -> its use
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
    cells: list[CellResult] = []
    rows: list[Sequence[Any]] = []
    for cell in result.cells:
        found = resources(result, cell)
        for use in found.use.values() if found is not None else ():
            assert found is not None
            cells.append(cell)
            rows.append((use.resource, use.installed, use.used, use.stranded, found.watts, found.dollars))
    if not rows:
        return None
    names = ("resource", "installed", "used", "stranded", "mean_watts", "purchase_dollars")
    leading = {**varied(result.study, cells), "seed": [cell.seed for cell in cells], "key": [cell.key for cell in cells]}
    return pl.DataFrame({**leading, **{name: [row[k] for row in rows] for k, name in enumerate(names)}})
