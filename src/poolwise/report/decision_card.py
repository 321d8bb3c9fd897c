"""Decision card of a study: the recommended order and size, certainty, rejected jobs and cost, compared with today."""

from __future__ import annotations

import math

from poolwise.catalog import PREFIX
from poolwise.comparison.waits import PairedWaits
from poolwise.files.cost_items import POWER
from poolwise.metrics.slowdown import wait_s
from poolwise.presentation.cost import money_rows
from poolwise.presentation.format import order_name
from poolwise.report import sentences
from poolwise.report.answer import Recommendation
from poolwise.report.cost import cost_of
from poolwise.report.page import PageTable, TableRow
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.results import watts_and_dollars
from poolwise.units import format_time


def decision_card(result: StudyResult, sweep: Sweep, found: Recommendation) -> PageTable:
    """Return the card; it has a column for today only if the study has a `[today]`."""
    cells = sweep.cells[found.series, found.at]
    waits = PairedWaits.of((result.outcomes(cell), result.today(cell), result.population(cell)) for cell in cells)
    today = waits.reference is not None
    name = next(iter(result.study.today.values())).parameters["today"] if today else ""
    rows = [["Queue order", found.series, today_of(result, "scheduler.order")]]
    if sweep.x_name:
        rows.append(["Size", sweep.amount(found.at), today_of(result, sweep.x_name)])
    rows.append(["Certainty of the order", sentences.certainty(found), ""])
    rows += cost_rows(result, cells[0])
    rows += waits.rows()
    if not today and result.study.measure.baseline:
        label = "Largest wait added to any job, compared with FCFS without backfilling"
        rows.append([label, _largest_added_wait(result, sweep, found), ""])
    caption = result.population_text()
    if len(cells) > 1:
        caption = f"{caption[:-1]}, in each of {len(cells)} seeds."
    measured = sum(int(result.population(cell).sum()) for cell in cells)
    if len(waits.recommended) < measured:
        caption += f" Waits cover the {len(waits.recommended):,} of {measured:,} jobs that also finish today."
    caption += "" if today else " The study has no [today]; add one to compare the recommendation with your current system."
    header = ["", "recommended", *([str(name)] if today else [])]
    return PageTable("Decision", header, [TableRow(row[: len(header)]) for row in rows], caption)


def today_of(result: StudyResult, path: str) -> str:
    """Return today's value of a varied parameter: its own, or that of the study if [today] does not change it."""
    for cell in result.study.today.values():
        if path == "scheduler.order":
            return order_name(str(cell.scheduler.order or cell.scheduler.kind))
        return str(cell.parameters.get(path, cell.machine.name)).removeprefix(PREFIX)
    return ""


def _largest_added_wait(result: StudyResult, sweep: Sweep, found: Recommendation) -> str:
    largest = 0.0
    for cell in sweep.cells[found.series, found.at]:
        outcomes, fcfs = result.outcomes(cell), result.baseline(cell)
        both = result.population(cell) & fcfs.finished
        largest = max(largest, float((wait_s(outcomes) - wait_s(fcfs))[both].max(initial=0.0)))
    return format_time(largest)


def cost_rows(result: StudyResult, cell: CellResult, other: CellResult | None = None, name: str = "today") -> list[list[str]]:
    """Return the cost and the savings of a machine, by the study's price list or by prices in the machine file.

    The reference is today, or an `other` run with its name.
    """
    cost = cost_of(result, cell, other)
    if cost is not None:
        years = "" if POWER not in [line.name for line in cost.lines] else f", with power over {_years(result, cell):g} years"
        return money_rows(cost, f"Cost of the machine{years}", name)
    today = result.study.today.get(cell.key)
    price = math.nan if today is None else watts_and_dollars(result.facts[today.key], today)[1]
    price = price if other is None else other.dollars
    if not math.isfinite(cell.dollars):
        return [["Price of the machine", "unknown: the study has no prices", ""]]
    rows = [["Price of the machine", f"{cell.dollars:,.0f} $", f"{price:,.0f} $" if math.isfinite(price) else "unknown"]]
    if not math.isfinite(price):
        return rows
    label = f"Savings compared with {name}" if price >= cell.dollars else f"Added cost compared with {name}"
    return [*rows, [label, f"{abs(price - cell.dollars):,.0f} $", ""]]


def _years(result: StudyResult, cell: CellResult) -> float:
    prices = result.simulated(cell).costs.prices
    return 0.0 if prices is None else prices.years
