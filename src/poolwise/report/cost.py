"""What the recommended machine of a study costs and saves."""

from __future__ import annotations

from poolwise.files.cost_items import CostItem, cost_items
from poolwise.presentation.cost import Cost, CostLine
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.results import watts_and_dollars


def cost_of(result: StudyResult, cell: CellResult, other: CellResult | None = None) -> Cost | None:
    """Bill the machine of a run, and today's or that of an `other` run; None where the study has no prices."""
    here = result.simulated(cell)
    if here.costs.prices is None:
        return None
    there, watts = result.study.today.get(cell.key), 0.0
    if other is not None:
        there, watts = result.simulated(other), other.watts
    elif there is not None:
        watts = watts_and_dollars(result.facts[there.key], there)[0]
    then = cost_items(here.costs.prices, here.machine, cell.watts)
    now = () if there is None else cost_items(here.costs.prices, there.machine, watts)
    amounts = [{item.name: item.amount for item in items} for items in (then, now)]
    items = {item.name: item for item in (*then, *now)}
    lines = (_line(item, amounts[0].get(name, 0.0), amounts[1].get(name, 0.0)) for name, item in items.items())
    return Cost(tuple(lines), there is not None)


def _line(item: CostItem, then: float, now: float) -> CostLine:
    return CostLine(item.name, item.unit, then, now, (item.least, item.likely, item.most))
