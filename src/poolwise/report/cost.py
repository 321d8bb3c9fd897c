"""Cost of the recommended machine of a study, and its savings."""

from __future__ import annotations

from poolwise.files.cost_items import CostItem, cost_items
from poolwise.presentation.cost import Cost, CostLine
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.results import watts_and_dollars


def cost_of(result: StudyResult, cell: CellResult, other: CellResult | None = None) -> Cost | None:
    """Bill the machine of a run, and that of today or of an `other` run; None if the study has no prices."""
    here = result.simulated(cell)
    if here.costs.prices is None:
        return None
    reference, watts = result.study.today.get(cell.key), 0.0
    if other is not None:
        reference, watts = result.simulated(other), other.watts
    elif reference is not None:
        watts = watts_and_dollars(result.facts[reference.key], reference)[0]
    recommended = cost_items(here.costs.prices, here.machine, cell.watts)
    current = () if reference is None else cost_items(here.costs.prices, reference.machine, watts)
    amounts = [{item.name: item.amount for item in items} for items in (recommended, current)]
    items = {item.name: item for item in (*recommended, *current)}
    lines = (_line(item, amounts[0].get(name, 0.0), amounts[1].get(name, 0.0)) for name, item in items.items())
    return Cost(tuple(lines), reference is not None)


def _line(item: CostItem, recommended: float, current: float) -> CostLine:
    return CostLine(item.name, item.unit, recommended, current, (item.least, item.likely, item.most))
