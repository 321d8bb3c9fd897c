"""The decision at a glance: what to run, how sure that is, who is turned away, what it costs, and today beside it."""

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
    """The card; a column for today only where the study names one."""
    cells = sweep.cells[found.series, found.at]
    waits = PairedWaits.of((result.outcomes(cell), result.today(cell), result.population(cell)) for cell in cells)
    today = waits.now is not None
    name = next(iter(result.study.today.values())).parameters["today"] if today else ""
    rows = [["Queue order", found.series, today_of(result, "scheduler.order")]]
    if sweep.x_name:
        rows.append(["Size", sweep.amount(found.at), today_of(result, sweep.x_name)])
    rows.append(["How sure the order is", sentences.certainty(found), ""])
    rows += money(result, cells[0])
    rows += waits.rows()
    if not today and result.study.measure.baseline:
        rows.append(
            ["Wait added to the job hit hardest, against FCFS without backfilling", _hit_hardest(result, sweep, found), ""]
        )
    caption = result.population_text()
    if len(cells) > 1:
        caption = f"{caption[:-1]}, in each of {len(cells)} seeds."
    measured = sum(int(result.population(cell).sum()) for cell in cells)
    if len(waits.then) < measured:
        caption += f" Waits are of the {len(waits.then):,} of all {measured:,} that finish today too."
    caption += "" if today else " The study names no [today] to compare with; add one to see what changes."
    header = ["", "recommended", *([str(name)] if today else [])]
    return PageTable("Decision", header, [TableRow(row[: len(header)]) for row in rows], caption)


def today_of(result: StudyResult, path: str) -> str:
    """What today has of a parameter that is varied: its own, or the same where [today] leaves it alone."""
    for cell in result.study.today.values():
        if path == "scheduler.order":
            return order_name(str(cell.scheduler.order or cell.scheduler.kind))
        return str(cell.parameters.get(path, cell.machine.name)).removeprefix(PREFIX)
    return ""


def _hit_hardest(result: StudyResult, sweep: Sweep, found: Recommendation) -> str:
    most = 0.0
    for cell in sweep.cells[found.series, found.at]:
        outcomes, fcfs = result.outcomes(cell), result.baseline(cell)
        both = result.population(cell) & fcfs.finished
        most = max(most, float((wait_s(outcomes) - wait_s(fcfs))[both].max(initial=0.0)))
    return format_time(most)


def money(result: StudyResult, cell: CellResult, other: CellResult | None = None, name: str = "today") -> list[list[str]]:
    """What the machine costs and saves, by the price list of the study or by prices in the machine file.

    Beside it stands today, or an `other` run with its name.
    """
    cost = cost_of(result, cell, other)
    if cost is not None:
        years = "" if POWER not in [line.name for line in cost.lines] else f", with power over {_years(result, cell):g} years"
        return money_rows(cost, f"Cost of the machine{years}", name)
    there = result.study.today.get(cell.key)
    now = math.nan if there is None else watts_and_dollars(result.facts[there.key], there)[1]
    now = now if other is None else other.dollars
    if not math.isfinite(cell.dollars):
        return [["Price of the machine", "not known: the study names no prices", ""]]
    rows = [["Price of the machine", f"{cell.dollars:,.0f} $", f"{now:,.0f} $" if math.isfinite(now) else "not known"]]
    if not math.isfinite(now):
        return rows
    label = f"Money saved against {name}" if now >= cell.dollars else f"Money spent beyond {name}"
    return [*rows, [label, f"{abs(now - cell.dollars):,.0f} $", ""]]


def _years(result: StudyResult, cell: CellResult) -> float:
    prices = result.simulated(cell).costs.prices
    return 0.0 if prices is None else prices.years
