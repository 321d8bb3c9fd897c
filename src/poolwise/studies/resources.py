"""What a run used of each resource, drew and cost: measured where the schedule is at hand, kept among a cell's facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from poolwise.files import costs
from poolwise.identity import Json
from poolwise.metrics.power import load_of, mean_watts, price
from poolwise.metrics.resource_use import ResourceUse, resource_use
from poolwise.metrics.window import Window
from poolwise.model import Schedule
from poolwise.studies.distributions import varied

if TYPE_CHECKING:
    from poolwise.studies.cells import Cell
    from poolwise.studies.results import CellResult, StudyResult


@dataclass(frozen=True)
class Resources:
    """What is measured of things rather than of jobs.

    Attributes
    ----------
    use : resource -> its use
    watts : mean power, NaN where nothing says
    dollars : purchase price, NaN where nothing says
    """

    use: Mapping[str, ResourceUse]
    watts: float
    dollars: float


def resources_of(schedule: Schedule, window: Window) -> Json:
    """Measure a schedule whose jobs share nodes, as plain data; empty for whole nodes, which have their own measures."""
    machine = schedule.machine
    if "nodes" in machine.resources:
        return {}
    rows = [[use.resource, use.installed, use.used, use.stranded] for use in resource_use(schedule, window)]
    load = load_of(schedule, window)
    things = {name: [_known(value) for value in values] for name, values in costs.things(machine, load).items()}
    return {"use": rows, "watts": _known(mean_watts(machine, load)), "dollars": _known(price(machine)), "things": things}


def watts_and_dollars(facts: Json, cell: Cell) -> tuple[float, float]:
    """Mean power and purchase price of a run, by the tables of a cell or else by its machine; NaN where nothing says."""
    kept: Json = facts.get("resources", {})
    watts, dollars = (math.nan if kept.get(name) is None else float(kept[name]) for name in ("watts", "dollars"))
    measured = {name: [math.nan if v is None else v for v in values] for name, values in kept.get("things", {}).items()}
    if cell.costs.power is not None:
        watts = costs.watts(cell.costs.power, measured)
    if cell.costs.prices is not None:
        dollars = costs.dollars(cell.costs.prices, cell.machine)
    return watts, dollars


def resources(result: StudyResult, cell: CellResult) -> Resources | None:
    """What a cell used, None where it was not measured."""
    kept: Json = result.facts[cell.key].get("resources", {})
    if not kept.get("use"):
        return None
    return Resources({row[0]: ResourceUse(*row) for row in kept["use"]}, cell.watts, cell.dollars)


def resource_frame(result: StudyResult) -> pl.DataFrame | None:
    """One row a cell and resource; None where no cell was measured."""
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


def _known(value: float) -> float | None:
    """A number as JSON has it."""
    return value if math.isfinite(value) else None
