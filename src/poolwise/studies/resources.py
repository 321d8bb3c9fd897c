"""What a run used of each resource, drew and cost: what the simulation kept among a cell's facts, as tables."""

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
    """What is measured about resources rather than about jobs.

    Attributes
    ----------
    use : resource -> its use
    watts : mean power, NaN where unknown
    dollars : purchase price, NaN where unknown
    """

    use: Mapping[str, ResourceUse]
    watts: float
    dollars: float


def resources(result: MeasuredStudy, cell: CellResult) -> Resources | None:
    """What a cell used, None where it was not measured."""
    kept: Json = result.facts[cell.key].get("resources", {})
    if not kept.get("use"):
        return None
    return Resources({row[0]: ResourceUse(*row) for row in kept["use"]}, cell.watts, cell.dollars)


def resource_frame(result: MeasuredStudy) -> pl.DataFrame | None:
    """One row per cell and resource; None where no cell was measured."""
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
    whose = {**varied(result.study, cells), "seed": [cell.seed for cell in cells], "key": [cell.key for cell in cells]}
    return pl.DataFrame({**whose, **{name: [row[k] for row in rows] for k, name in enumerate(names)}})
