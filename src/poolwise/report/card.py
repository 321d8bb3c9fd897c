"""The decision at a glance: what to run, how sure that is, who is turned away, what it costs, and today beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.files.bill import POWER
from poolwise.metrics import Outcomes
from poolwise.metrics.slowdown import wait_s
from poolwise.report import words
from poolwise.report.answer import Recommendation
from poolwise.report.cost import Cost, money_between
from poolwise.report.page import PageTable, TableRow
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.results import watts_and_dollars
from poolwise.units import format_time


@dataclass(frozen=True, eq=False)
class Fares:
    """How jobs wait under the answer and, where the study names one, today; all on the same jobs, one run a seed after another.

    Attributes
    ----------
    then : (n,) s that each job waits under the answer
    now : the same today, None where the study names no today
    turned_away : jobs that can never run, most of any seed: under the answer, and today
    """

    then: FloatArray
    now: FloatArray | None
    turned_away: tuple[int, int]

    @classmethod
    def of(cls, result: StudyResult, cells: Sequence[CellResult]) -> Fares:
        """Look at the runs of one setting, one a seed; jobs count that both the answer and today finish."""
        then, now, away_today = [], [], 0
        for cell in cells:
            outcomes, today, population = result.outcomes(cell), result.today(cell), result.population(cell)
            then.append(wait_s(outcomes)[population])
            if today is not None:
                now.append(wait_s(today)[population])
                away_today = max(away_today, _turned_away(today))
        away = max(sum(cell.rejected.values()) for cell in cells)
        joined = np.concatenate(now) if now else None
        return cls(np.concatenate(then), joined, (away, away_today))


def _turned_away(outcomes: Outcomes) -> int:
    return sum(1 for reason in outcomes.reason if reason)


def decision_card(result: StudyResult, sweep: Sweep, found: Recommendation) -> PageTable:
    """The card; a column for today only where the study names one."""
    fares = Fares.of(result, sweep.cells[found.series, found.at])
    today = fares.now is not None
    name = next(iter(result.study.today.values())).parameters["today"] if today else ""
    rows = [["Queue order", found.series.upper(), _of_today(result, "scheduler.order")]]
    if sweep.x_name:
        rows.append(["Size", sweep.amount(found.at), _of_today(result, sweep.x_name)])
    rows.append(["How sure the order is", words.certainty(found), ""])
    rows.append(["Jobs that can never run", *(f"{count:,}" for count in fares.turned_away)])
    rows += _money_rows(result, sweep.cells[found.series, found.at][0])
    for label, measure in _WAITS:
        rows.append([label, format_time(measure(fares.then)), "" if fares.now is None else format_time(measure(fares.now))])
    if fares.now is not None:
        added = fares.then - fares.now
        worse = int((added > 0).sum())
        rows.append(["Wait added to the job hit hardest", format_time(max(0.0, float(added.max()))), ""])
        rows.append(["Jobs that wait longer than today", f"{worse:,} of {len(added):,}", ""])
    elif result.study.measure.baseline:
        rows.append(
            ["Wait added to the job hit hardest, against FCFS without backfilling", _hit_hardest(result, sweep, found), ""]
        )
    seeds = len(sweep.cells[found.series, found.at])
    caption = (
        f"Measured on {found.jobs:,} jobs after a warm-up of {result.study.measure.warm_up:,}, the same in every run"
        f"{f', over {seeds} seeds' if seeds > 1 else ''}."
        + ("" if today else " The study names no [today] to compare with; add one to see what changes.")
    )
    header = ["", "recommended", *([str(name)] if today else [])]
    return PageTable("Decision", header, [TableRow(row[: len(header)]) for row in rows], caption)


_WAITS: tuple[tuple[str, Callable[[FloatArray], float]], ...] = (
    ("Median wait", lambda waits: float(np.median(waits))),
    ("95th percentile of the wait", lambda waits: float(np.quantile(waits, 0.95))),
)


def _of_today(result: StudyResult, path: str) -> str:
    """What today has of a parameter that is varied: its own, or the same where [today] leaves it alone."""
    for cell in result.study.today.values():
        if path == "scheduler.order":
            return str(cell.scheduler.order or cell.scheduler.kind).upper()
        return str(cell.parameters.get(path, cell.machine.name))
    return ""


def _hit_hardest(result: StudyResult, sweep: Sweep, found: Recommendation) -> str:
    most = 0.0
    for cell in sweep.cells[found.series, found.at]:
        outcomes, fcfs = result.outcomes(cell), result.baseline(cell)
        both = result.population(cell) & fcfs.finished
        most = max(most, float((wait_s(outcomes) - wait_s(fcfs))[both].max(initial=0.0)))
    return format_time(most)


def _money_rows(result: StudyResult, cell: CellResult) -> list[list[str]]:
    """What the machine costs and saves: by the price list of the study, or by prices in the machine file."""
    cost, there = Cost.of(result, cell), result.study.today.get(cell.key)
    if cost is not None:
        years = "" if POWER not in [line.name for line in cost.lines] else f", with power over {_years(result, cell):g} years"
        rows = [[f"Cost of the machine{years}", money_between(cost.total), money_between(cost.total_today)]]
        return [*rows, ["Money saved against today", money_between(cost.saved), ""]] if cost.today else rows
    now = math.nan if there is None else watts_and_dollars(result.facts[there.key], there)[1]
    if not math.isfinite(cell.dollars):
        return [["Price of the machine", "not known: the study names no prices", ""]]
    rows = [["Price of the machine", f"{cell.dollars:,.0f} $", f"{now:,.0f} $" if math.isfinite(now) else "not known"]]
    return [*rows, ["Money saved against today", f"{now - cell.dollars:,.0f} $", ""]] if math.isfinite(now) else rows


def _years(result: StudyResult, cell: CellResult) -> float:
    prices = result.simulated(cell).costs.prices
    return 0.0 if prices is None else prices.years
